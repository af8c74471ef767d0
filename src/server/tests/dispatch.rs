//! Jobs and workers meeting, and all that can come between.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Server};

fn running(job: &str, attempt: u32) -> Value {
    json!([{"job_id": job, "attempt": attempt}])
}

#[tokio::test]
async fn a_job_goes_from_submit_to_completed() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let offer = events.offer().await;
    assert_eq!((offer.job_id.as_str(), offer.attempt.0, offer.config.len()), (job.as_str(), 1, 0));
    assert!(offer.upload_endpoint.starts_with('/') && offer.upload_token.starts_with("jt_"));
    assert_eq!(server.status_of(&job).await, "offered");
    server.report(&key, &job, json!({"status": "starting", "attempt": 1})).await.ok(200);
    assert_eq!(server.status_of(&job).await, "starting");
    server.report(&key, &job, json!({"status": "training", "attempt": 1})).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!(
        (&view["status"], &view["worker_id"], &view["worker_name"]),
        (&json!("running"), &json!(id), &json!("gpu-1"))
    );
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("completed"), &json!("completed")));
    assert_eq!(view["attempts"][0]["exit_code"], 0);
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!((&worker["status"], &worker["jobs"]), (&json!("idle"), &json!([])));
}

#[tokio::test]
async fn every_change_has_exactly_one_audit_entry() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    for status in ["starting", "starting", "running", "running", "completed", "completed"] {
        server.report(&key, &job, json!({"status": status, "attempt": 1})).await.ok(200);
    }
    server.report(&key, &job, json!({"status": "failed", "attempt": 1})).await.problem(409, "job_ended");
    let mut tx = server.app.core.read().await.expect("a reader");
    let actions =
        |trail: Vec<crate::store::audit::StoredEntry>| trail.into_iter().map(|e| e.action).collect::<Vec<_>>();
    let of_job = actions(tx.audit_of(&job).await.expect("readable"));
    assert_eq!(of_job, ["job.submitted", "job.offered", "job.starting", "job.running", "job.completed"]);
    let of_worker = actions(tx.audit_of(&id).await.expect("readable"));
    assert_eq!(of_worker, ["worker.created", "worker.registered", "worker.online"]);
}

#[tokio::test]
async fn a_job_that_was_there_first_goes_to_the_worker_that_comes() {
    let server = Server::start().await;
    server.config("digits").await;
    let first = server.submit("digits").await;
    server.clock.advance(Millis(1));
    let second = server.submit("digits").await;
    let queue = server.get(&By::Admin, "/api/queue").await.ok(200);
    let places: Vec<_> =
        queue["jobs"].as_array().expect("a list").iter().map(|job| job["queue_position"].clone()).collect();
    assert_eq!((places, &queue["counts"]["waiting"]), (vec![json!(2), json!(1)], &json!(2)));
    let (_, key, mut events) = server.online("gpu-1").await;
    assert_eq!(events.offer().await.job_id.as_str(), first);
    assert_eq!(server.status_of(&second).await, "queued");
    server.report(&key, &first, json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert_eq!(events.offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn of_six_concurrent_submits_one_is_offered_to_the_one_worker() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, _, _events) = server.online("gpu-1").await;
    futures_util::future::join_all((0..6).map(|_| server.submit("digits"))).await;
    let page = server.get(&By::Admin, "/api/queue").await.ok(200);
    let count = |status| page["jobs"].as_array().expect("a list").iter().filter(|job| job["status"] == status).count();
    assert_eq!((count("offered"), count("queued")), (1, 5));
}

#[tokio::test]
async fn an_unanswered_offer_goes_to_the_next_and_the_late_answer_is_refused() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, slow, mut slow_events) = server.online("a-slow").await;
    let job = server.submit("digits").await;
    let offer = slow_events.offer().await;
    server.pass(Millis::seconds(29)).await;
    assert_eq!(server.status_of(&job).await, "offered");
    drop(slow_events);
    let (_, quick, mut quick_events) = server.online("b-quick").await;
    server.pass(Millis::seconds(1)).await;
    let second = quick_events.offer().await;
    assert_eq!((second.job_id.as_str(), second.attempt.0), (job.as_str(), 2));
    assert_ne!(second.upload_token, offer.upload_token);
    server.report(&slow, &job, json!({"status": "starting", "attempt": 1})).await.problem(409, "old_attempt");
    server.report(&quick, &job, json!({"status": "starting", "attempt": 2})).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["attempts"][0]["outcome"], &view["status"]), (&json!("expired"), &json!("starting")));
    let told = server.heartbeat(&slow, running(&job, 1)).await;
    assert_eq!((told.stop.len(), told.run.len()), (1, 0));
}

#[tokio::test]
async fn a_cancelled_job_never_completes() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let cancelled = server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(cancelled["status"], "cancelling");
    let told = events.of_type("job_cancel").await;
    assert_eq!((&told["job_id"], &told["attempt"], &told["reason"]), (&json!(job), &json!(1), &json!("cancelled")));
    assert_eq!(server.heartbeat(&key, running(&job, 1)).await.stop.len(), 1);
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert_eq!(server.status_of(&job).await, "cancelled");
    let again = server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await;
    again.problem(409, "job_ended");
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.problem(409, "job_ended");
}

#[tokio::test]
async fn a_waiting_or_offered_job_is_cancelled_at_once() {
    let server = Server::start().await;
    server.config("digits").await;
    let waiting = server.submit("digits").await;
    let cancel =
        async |job: &str| server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(cancel(&waiting).await["status"], "cancelled");
    let (_, key, _events) = server.online("gpu-1").await;
    let offered = server.submit("digits").await;
    assert_eq!(cancel(&offered).await["status"], "cancelled");
    server.report(&key, &offered, json!({"status": "starting", "attempt": 1})).await.problem(409, "job_ended");
}

#[tokio::test]
async fn an_agent_that_comes_back_keeps_its_job_and_one_that_forgot_loses_it() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let kept = server.register(&key, running(&job, 1)).await;
    assert_eq!((&kept["desired"]["run"], server.status_of(&job).await), (&running(&job, 1), "running".to_owned()));
    let forgot = server.register(&key, json!([])).await;
    assert_eq!(forgot["desired"]["run"], json!([]));
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    assert!(view["error"].as_str().is_some_and(|why| why.contains("came back without")));
}

#[tokio::test]
async fn a_lost_job_waits_out_its_back_off_and_is_taken_back_by_who_still_runs_it() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    server.report(&key, &job, json!({"status": "requeue", "attempt": 1, "error": "spot notice"})).await.ok(200);
    server.pass(Millis::seconds(9)).await;
    assert_eq!(server.status_of(&job).await, "queued");
    let desired = server.heartbeat(&key, running(&job, 1)).await;
    assert_eq!((desired.run.len(), server.status_of(&job).await), (1, "running".to_owned()));
    server.report(&key, &job, json!({"status": "requeue", "attempt": 1})).await.ok(200);
    server.pass(Millis::seconds(20)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("offered"), &json!(2)));
}

#[tokio::test]
async fn a_trainers_failure_is_final_and_says_why() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let failed = json!({"status": "failed", "attempt": 1, "error": "CUDA out of memory", "exit_code": 1});
    server.report(&key, &job, failed).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["error"]), (&json!("failed"), &json!("CUDA out of memory")));
    assert_eq!(view["attempts"][0]["exit_code"], 1);
}

#[tokio::test]
async fn what_a_trainer_says_does_nothing_where_it_is_read() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let point = json!({"step": 1, "at": "2024-01-15T10:30:00Z", "stage": "a\u{7}b", "metrics": {"x\u{2066}y": 1.0}});
    server
        .post(&key, &format!("/api/workers/job/{job}/progress"), json!({"attempt": 1, "points": [point]}))
        .await
        .ok(200);
    let series = server.get(&By::Admin, &format!("/api/queue/{job}/progress")).await.ok(200);
    assert_eq!(series["points"][0]["metrics"], json!({"x\\u{2066}y": 1.0}));
    assert_eq!(server.job(&job).await["progress"]["stage"], "a\\u{7}b");
    let failed = json!({"status": "failed", "attempt": 1, "error": "report\u{202e}fdp.exe:\n\tline 2\u{1b}[2J"});
    server.report(&key, &job, failed).await.ok(200);
    assert_eq!(server.job(&job).await["error"], "report\\u{202e}fdp.exe:\n\tline 2\\u{1b}[2J");
}

#[tokio::test]
async fn reports_that_make_no_sense_change_nothing() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let (_, other, _other_events) = server.online("gpu-2").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    server.report(&key, &job, json!({"status": "banana"})).await.problem(422, "invalid_status");
    server.report(&key, "j_none", json!({"status": "running"})).await.problem(404, "job_not_found");
    server.report(&other, &job, json!({"status": "running", "attempt": 1})).await.problem(409, "not_your_attempt");
    server.report(&key, &job, json!({"status": "running", "attempt": 2})).await.problem(409, "not_your_attempt");
    server.report(&token, "j_other", json!({"status": "running"})).await.problem(403, "other_attempt");
    server.report(&token, &job, json!({"status": "running", "attempt": 9})).await.problem(403, "other_attempt");
    assert_eq!(server.status_of(&job).await, "offered");
    server.report(&token, &job, json!({"status": "running"})).await.ok(200);
    assert_eq!(server.status_of(&job).await, "running");
}

#[tokio::test]
async fn a_job_goes_only_where_its_demands_are_met() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, _, _small) = server.online("small").await;
    let submit = async |body: Value| server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["status"].clone();
    let ask = |key: &str, value: Value| {
        let mut body = json!({"config_name": "digits", "target": "worker"});
        body[key] = value;
        body
    };
    assert_eq!(submit(ask("gpu_count", json!(1))).await, "queued");
    assert_eq!(submit(ask("min_vram_gb", json!(24))).await, "queued");
    assert_eq!(submit(ask("accelerator_type", json!("cuda"))).await, "queued");
    assert_eq!(submit(ask("worker_labels", json!({"name": "big*"}))).await, "queued");
    assert_eq!(submit(ask("target", json!("local"))).await, "queued");
    assert_eq!(submit(ask("worker_labels", json!({"name": "sm?ll"}))).await, "offered");
}

#[tokio::test]
async fn an_older_agent_gets_what_it_needs_and_needs_no_attempt_number() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("older").await;
    let body =
        json!({"name": "x", "gpu_info": {"count": 1, "name": "RTX"}, "persistent": true, "current_job_id": null});
    server.post(&key, "/api/workers/register", body.clone()).await.ok(200);
    let mut events = server.stream(&key).await;
    let job = server.submit("digits").await;
    let offer = events.offer().await;
    assert_eq!((offer.config["--num_processes"].clone(), offer.dataloader), (json!(1), Some(json!([]))));
    assert_eq!((offer.provider.as_deref(), &offer.gpus[0]), (Some("kubeflow"), &format!("{id}/gpu0")));
    for status in ["starting", "training"] {
        server.report(&key, &job, json!({"status": status, "error": null})).await.ok(200);
    }
    let mut again = body.clone();
    again["current_job_id"] = json!(job);
    let answer = server.post(&key, "/api/workers/register", again).await.ok(200);
    assert_eq!((&answer["resume_job"]["job_id"], answer.get("abandon_job")), (&json!(job), None));
    server.report(&key, &job, json!({"status": "completed"})).await.ok(200);
    let mut stale = body;
    stale["current_job_id"] = json!(job);
    let answer = server.post(&key, "/api/workers/register", stale).await.ok(200);
    assert_eq!((answer.get("resume_job"), &answer["abandon_job"]), (None, &json!(true)));
}
