//! Dispatch of jobs to workers, with concurrent requests.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

fn running_claims(job: &str, attempt: u32) -> Value {
    json!([{"job_id": job, "attempt": attempt}])
}

#[tokio::test]
async fn job_runs_from_submit_to_completed() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let offer = events.next_offer().await;
    assert_eq!((offer.job_id.as_str(), offer.attempt.0, offer.config.len()), (job.as_str(), 1, 0));
    assert!(offer.upload_endpoint.starts_with('/') && offer.upload_token.starts_with("jt_"));
    assert_eq!(server.job_status(&job).await, "offered");
    server.report_status(&key, &job, json!({"status": "starting", "attempt": 1})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "starting");
    server.report_status(&key, &job, json!({"status": "training", "attempt": 1})).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!(
        (&view["status"], &view["worker_id"], &view["worker_name"]),
        (&json!("running"), &json!(id), &json!("gpu-1"))
    );
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("completed"), &json!("completed")));
    assert_eq!(view["attempts"][0]["exit_code"], 0);
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!((&worker["status"], &worker["jobs"]), (&json!("idle"), &json!([])));
}

#[tokio::test]
async fn every_change_has_exactly_one_audit_entry() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    for status in ["starting", "starting", "running", "running", "completed", "completed"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    server.report_status(&key, &job, json!({"status": "failed", "attempt": 1})).await.expect_problem(409, "job_ended");
    let mut tx = server.app.services.context.read().await.expect("a reader");
    let actions = |audit_log: Vec<crate::store::audit::StoredAuditEntry>| {
        audit_log.into_iter().map(|entry| entry.action).collect::<Vec<_>>()
    };
    let job_actions = actions(tx.audit_of_target(&job).await.expect("readable"));
    assert_eq!(job_actions, ["job.submitted", "job.offered", "job.starting", "job.running", "job.completed"]);
    let worker_actions = actions(tx.audit_of_target(&id).await.expect("readable"));
    assert_eq!(worker_actions, ["worker.created", "worker.registered", "worker.online"]);
}

#[tokio::test]
async fn queued_job_goes_to_a_new_worker() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let first = server.submit("digits").await;
    server.clock.advance(Millis(1));
    let second = server.submit("digits").await;
    let queue = server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    let positions: Vec<_> =
        queue["jobs"].as_array().expect("a list").iter().map(|job| job["queue_position"].clone()).collect();
    assert_eq!((positions, &queue["counts"]["waiting"]), (vec![json!(2), json!(1)], &json!(2)));
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), first);
    assert_eq!(server.job_status(&second).await, "queued");
    server.report_status(&key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert_eq!(events.next_offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn six_concurrent_submits_make_one_offer_for_one_worker() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _, _events) = server.connect_worker("gpu-1").await;
    futures_util::future::join_all((0..6).map(|_| server.submit("digits"))).await;
    let page = server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    let count = |status| page["jobs"].as_array().expect("a list").iter().filter(|job| job["status"] == status).count();
    assert_eq!((count("offered"), count("queued")), (1, 5));
}

#[tokio::test]
async fn expired_offer_goes_to_another_worker_and_late_answer_is_rejected() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, slow, mut slow_events) = server.connect_worker("a-slow").await;
    let job = server.submit("digits").await;
    let offer = slow_events.next_offer().await;
    server.advance(Millis::from_secs(29)).await;
    assert_eq!(server.job_status(&job).await, "offered");
    drop(slow_events);
    let (_, quick, mut quick_events) = server.connect_worker("b-quick").await;
    server.advance(Millis::from_secs(1)).await;
    let second = quick_events.next_offer().await;
    assert_eq!((second.job_id.as_str(), second.attempt.0), (job.as_str(), 2));
    assert_ne!(second.upload_token, offer.upload_token);
    server
        .report_status(&slow, &job, json!({"status": "starting", "attempt": 1}))
        .await
        .expect_problem(409, "stale_attempt");
    server.report_status(&quick, &job, json!({"status": "starting", "attempt": 2})).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["attempts"][0]["outcome"], &view["status"]), (&json!("expired"), &json!("starting")));
    let response = server.heartbeat(&slow, running_claims(&job, 1)).await;
    assert_eq!((response.stop.len(), response.run.len()), (1, 0));
}

#[tokio::test]
async fn cancelled_job_never_completes() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let cancelled =
        server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(cancelled["status"], "cancelling");
    let event = events.next_of_type("job_cancel").await;
    assert_eq!((&event["job_id"], &event["attempt"], &event["reason"]), (&json!(job), &json!(1), &json!("cancelled")));
    assert_eq!(server.heartbeat(&key, running_claims(&job, 1)).await.stop.len(), 1);
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "cancelled");
    let again = server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await;
    again.expect_problem(409, "job_ended");
    server
        .report_status(&key, &job, json!({"status": "completed", "attempt": 1}))
        .await
        .expect_problem(409, "job_ended");
}

#[tokio::test]
async fn queued_or_offered_job_is_cancelled_immediately() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let waiting = server.submit("digits").await;
    let cancel = async |job: &str| {
        server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200)
    };
    assert_eq!(cancel(&waiting).await["status"], "cancelled");
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let offered = server.submit("digits").await;
    assert_eq!(cancel(&offered).await["status"], "cancelled");
    server
        .report_status(&key, &offered, json!({"status": "starting", "attempt": 1}))
        .await
        .expect_problem(409, "job_ended");
}

#[tokio::test]
async fn reconnecting_agent_keeps_its_job_unless_it_forgot_it() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let registered = server.register(&key, running_claims(&job, 1)).await;
    assert_eq!(
        (&registered["desired"]["run"], server.job_status(&job).await),
        (&running_claims(&job, 1), "running".to_owned())
    );
    let registration = server.register(&key, json!([])).await;
    assert_eq!(registration["desired"]["run"], json!([]));
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    assert!(view["error"].as_str().is_some_and(|error| error.contains("reconnected without")));
}

#[tokio::test]
async fn lost_job_waits_for_its_back_off_unless_its_agent_returns() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.register(&key, json!([])).await;
    server.advance(Millis::from_secs(9)).await;
    assert_eq!(server.job_status(&job).await, "queued");
    let claim = async || {
        let desired = server.heartbeat(&key, running_claims(&job, 1)).await;
        (desired.run.len(), desired.stop.len(), server.job_status(&job).await)
    };
    assert_eq!(claim().await, (1, 0, "running".to_owned()));
    let requeue = json!({"status": "requeue", "attempt": 1, "error": "spot notice"});
    server.report_status(&key, &job, requeue).await.expect_status(200);
    assert_eq!(claim().await, (0, 1, "queued".to_owned()), "sent before the end was reported, and late");
    let _events = server.open_stream(&key).await;
    server.advance(Millis::from_secs(20)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("offered"), &json!(2)));
}

#[tokio::test]
async fn trainer_failure_is_final_with_its_reason() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let failed = json!({"status": "failed", "attempt": 1, "error": "CUDA out of memory", "exit_code": 1});
    server.report_status(&key, &job, failed).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["error"]), (&json!("failed"), &json!("CUDA out of memory")));
    assert_eq!(view["attempts"][0]["exit_code"], 1);
}

#[tokio::test]
async fn trainer_output_is_sanitized() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let point = json!({"step": 1, "at": "2024-01-15T10:30:00Z", "stage": "a\u{7}b", "metrics": {"x\u{2066}y": 1.0}});
    server
        .post(&key, &format!("/api/workers/job/{job}/progress"), json!({"attempt": 1, "points": [point]}))
        .await
        .expect_status(200);
    let series = server.get(&Actor::Admin, &format!("/api/queue/{job}/progress")).await.expect_status(200);
    assert_eq!(series["points"][0]["metrics"], json!({"x\\u{2066}y": 1.0}));
    assert_eq!(server.job(&job).await["progress"]["stage"], "a\\u{7}b");
    let failed = json!({"status": "failed", "attempt": 1, "error": "report\u{202e}fdp.exe:\n\tline 2\u{1b}[2J"});
    server.report_status(&key, &job, failed).await.expect_status(200);
    assert_eq!(server.job(&job).await["error"], "report\\u{202e}fdp.exe:\n\tline 2\\u{1b}[2J");
}

#[tokio::test]
async fn last_stage_does_not_inherit_metrics() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let point = |step: u64, loss: f64, stage: &str| {
        json!({"step": step, "total_steps": 20, "at": "2024-01-15T10:30:00Z", "stage": stage, "epoch": 2.0,
            "loss": loss, "learning_rate": 0.0001})
    };
    // Agents report a checkpoint and the end with the last step and its values.
    for points in [
        vec![point(19, 2.25, "running"), point(20, 2.5, "running")],
        vec![point(20, 2.5, "checkpoint_save")],
        vec![point(20, 2.5, "training_complete")],
    ] {
        let body = json!({"attempt": 1, "points": points});
        server.post(&key, &format!("/api/workers/job/{job}/progress"), body).await.expect_status(200);
    }
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let series = server.get(&Actor::Admin, &format!("/api/queue/{job}/progress")).await.expect_status(200);
    let losses: Vec<_> =
        series["points"].as_array().expect("a list").iter().map(|entry| entry["loss"].clone()).collect();
    assert_eq!(losses, [json!(2.25), json!(2.5)]);
    let progress = &server.job(&job).await["progress"];
    assert_eq!((&progress["loss"], &progress["stage"]), (&json!(2.5), &json!("training_complete")));
    assert_eq!((&progress["learning_rate"], &progress["epoch"]), (&json!(0.0001), &json!(2.0)));
    let page = server.get(&Actor::Admin, &format!("/jobs/{job}")).await.text().replace("<!>", "");
    for value in ["2.5", "20"] {
        assert!(page.contains(&format!(">{value}<")), "{value}: {page}");
    }
}

#[tokio::test]
async fn invalid_reports_change_nothing() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let (_, other, _other_events) = server.connect_worker("gpu-2").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "banana"})).await.expect_problem(422, "invalid_status");
    server.report_status(&key, "j_none", json!({"status": "running"})).await.expect_problem(404, "job_not_found");
    server
        .report_status(&other, &job, json!({"status": "running", "attempt": 1}))
        .await
        .expect_problem(409, "not_your_attempt");
    server
        .report_status(&key, &job, json!({"status": "running", "attempt": 2}))
        .await
        .expect_problem(409, "not_your_attempt");
    server.report_status(&token, "j_other", json!({"status": "running"})).await.expect_problem(403, "other_attempt");
    server
        .report_status(&token, &job, json!({"status": "running", "attempt": 9}))
        .await
        .expect_problem(403, "other_attempt");
    assert_eq!(server.job_status(&job).await, "offered");
    server.report_status(&token, &job, json!({"status": "running"})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "running");
}

#[tokio::test]
async fn job_goes_to_matching_workers_only() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _, _small) = server.connect_worker("small").await;
    let submit = async |body: Value| {
        server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["status"].clone()
    };
    let request = |key: &str, value: Value| {
        let mut body = json!({"config_name": "digits", "target": "worker"});
        body[key] = value;
        body
    };
    assert_eq!(submit(request("gpu_count", json!(1))).await, "queued");
    assert_eq!(submit(request("min_vram_gb", json!(24))).await, "queued");
    assert_eq!(submit(request("accelerator_type", json!("cuda"))).await, "queued");
    assert_eq!(submit(request("worker_labels", json!({"name": "big*"}))).await, "queued");
    assert_eq!(submit(request("target", json!("local"))).await, "queued");
    assert_eq!(submit(request("worker_labels", json!({"name": "sm?ll"}))).await, "offered");
}

#[tokio::test]
async fn older_agent_works_without_attempt_numbers() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("older").await;
    let body =
        json!({"name": "x", "gpu_info": {"count": 1, "name": "RTX"}, "persistent": true, "current_job_id": null});
    server.post(&key, "/api/workers/register", body.clone()).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    let offer = events.next_offer().await;
    assert_eq!((offer.config["--num_processes"].clone(), offer.dataloader), (json!(1), Some(json!([]))));
    assert_eq!((offer.provider.as_deref(), &offer.gpus[0]), (Some("kubeflow"), &format!("{id}/gpu0")));
    for status in ["starting", "training"] {
        server.report_status(&key, &job, json!({"status": status, "error": null})).await.expect_status(200);
    }
    let mut again = body.clone();
    again["current_job_id"] = json!(job);
    let response = server.post(&key, "/api/workers/register", again).await.expect_status(200);
    assert_eq!((&response["resume_job"]["job_id"], response.get("abandon_job")), (&json!(job), None));
    server.report_status(&key, &job, json!({"status": "completed"})).await.expect_status(200);
    let mut stale = body;
    stale["current_job_id"] = json!(job);
    let response = server.post(&key, "/api/workers/register", stale).await.expect_status(200);
    assert_eq!((response.get("resume_job"), &response["abandon_job"]), (None, &json!(true)));
}
