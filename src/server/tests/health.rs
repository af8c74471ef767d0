//! Who is gone, what becomes of what they had, and when a drain is over.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Events, Server, read};

fn running(job: &str, attempt: u32) -> Value {
    json!([{"job_id": job, "attempt": attempt}])
}

/// A job that runs on a worker of our own agent.
async fn at_work(server: &Server) -> (String, By, super::harness::Events, String) {
    server.config("digits").await;
    let (id, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    (id, key, events, job)
}

#[tokio::test]
async fn a_silent_workers_job_goes_to_another() {
    let server = Server::start().await;
    let (id, _, _events, job) = at_work(&server).await;
    server.pass(Millis::seconds(120)).await;
    assert_eq!(server.status_of(&job).await, "running", "the timeout is not over");
    server.pass(Millis::seconds(1)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    assert_eq!(server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "offline");
    let (_, _, mut others) = server.online("gpu-2").await;
    server.pass(Millis::seconds(10)).await;
    let offer = others.offer().await;
    assert_eq!((offer.job_id.as_str(), offer.attempt.0), (job.as_str(), 2));
}

#[tokio::test]
async fn every_worker_is_watched_and_not_a_page_of_them() {
    const OTHERS: usize = 130;
    let server = Server::start().await;
    let (oldest, _, _events, job) = at_work(&server).await;
    for n in 0..OTHERS {
        let (_, key) = server.worker(&format!("other-{n}")).await;
        server.register(&key, json!([])).await;
        if n % 2 == 0 {
            server.get(&key, "/api/workers/next?wait=0").await.ok(200);
        }
    }
    let listed = async || server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    let counts = listed().await["counts"].clone();
    assert_eq!(counts, json!({"busy": 1, "connecting": OTHERS / 2, "draining": 0, "idle": OTHERS / 2, "offline": 0}));
    server.clock.advance(Millis::seconds(121));
    let checked = server.app.core.check_health().await.expect("a database");
    assert_eq!((checked.silent, checked.failed), (OTHERS + 1, 0), "in one pass");
    let page = listed().await;
    assert_eq!((&page["total"], &page["counts"]["offline"]), (&json!(OTHERS + 1), &json!(OTHERS + 1)));
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{oldest}")).await.ok(200);
    assert_eq!((&view["status"], server.status_of(&job).await.as_str()), (&json!("offline"), "queued"));
}

#[tokio::test]
async fn who_slept_has_not_listened() {
    let server = Server::start().await;
    let (_, key, _events, job) = at_work(&server).await;
    server.clock.sleep(Millis::seconds(8 * 3_600));
    server.pass(Millis::seconds(100)).await;
    assert_eq!(server.status_of(&job).await, "running", "it may have beaten all night");
    server.heartbeat(&key, running(&job, 1)).await;
    server.pass(Millis::seconds(119)).await;
    assert_eq!(server.status_of(&job).await, "running");
    server.pass(Millis::seconds(2)).await;
    assert_eq!(server.status_of(&job).await, "queued", "now it is silent");
}

#[tokio::test]
async fn heartbeats_keep_a_worker() {
    let server = Server::start().await;
    let (_, key, _events, job) = at_work(&server).await;
    for _ in 0..10 {
        server.pass(Millis::seconds(100)).await;
        server.heartbeat(&key, running(&job, 1)).await;
    }
    assert_eq!(server.status_of(&job).await, "running");
}

#[tokio::test]
async fn a_worker_that_comes_back_in_time_keeps_its_job() {
    let server = Server::start().await;
    let (_, key, _events, job) = at_work(&server).await;
    server.pass(Millis::seconds(500)).await;
    assert_eq!(server.status_of(&job).await, "queued");
    server
        .post(&key, "/api/workers/heartbeat", json!({"attempts": running(&job, 1)}))
        .await
        .problem(409, "not_registered");
    server.register(&key, running(&job, 1)).await;
    let view = server.job(&job).await;
    assert_eq!(
        (&view["status"], &view["attempt"]),
        (&json!("running"), &json!(1)),
        "nobody else had it: it is taken back"
    );
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
}

#[tokio::test]
async fn losses_run_out_and_say_why() {
    let server = Server::start().await;
    let (id, key, mut events, job) = at_work(&server).await;
    for attempt in 1..=4 {
        server.pass(Millis::seconds(121)).await;
        if attempt < 4 {
            assert_eq!(server.status_of(&job).await, "queued", "attempt {attempt} is retried");
            server.register(&key, json!([])).await;
            events = server.stream(&key).await;
            server.pass(Millis::seconds(100)).await;
            events.offer().await;
            server.report(&key, &job, json!({"status": "running", "attempt": attempt + 1})).await.ok(200);
        }
    }
    drop(events);
    let view = server.job(&job).await;
    assert_eq!(view["status"], "failed");
    let error = view["error"].as_str().expect("a reason");
    assert!(error.contains("retries are used up") && error.contains("went offline"), "{error}");
    assert_eq!(view["attempts"].as_array().map(Vec::len), Some(4));
    assert_eq!(server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "offline");
}

#[tokio::test]
async fn a_cancelled_job_of_a_silent_worker_is_cancelled() {
    let server = Server::start().await;
    let (_, _, _events, job) = at_work(&server).await;
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(server.status_of(&job).await, "cancelling");
    server.pass(Millis::seconds(121)).await;
    assert_eq!(server.status_of(&job).await, "cancelled");
}

#[tokio::test]
async fn an_older_agents_open_stream_speaks_for_it() {
    let server = Server::start().await;
    let (id, key) = server.worker("old").await;
    let gpu = json!({"name": "A100", "vram_gb": 80.0, "count": 1, "accelerator": "cuda"});
    server
        .post(&key, "/api/workers/register", json!({"name": "old", "gpu_info": gpu, "persistent": true}))
        .await
        .ok(200);
    let mut events = server.stream(&key).await;
    events.of_type("drain").await;
    let status = async || server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"].clone();
    server.pass(Millis::seconds(10_000)).await;
    assert_eq!(status().await, "idle");
    drop(events);
    while status().await != "connecting" {
        tokio::task::yield_now().await;
    }
    server.pass(Millis::seconds(121)).await;
    assert_eq!(status().await, "offline");
}

#[tokio::test]
async fn offline_ephemeral_workers_are_removed_and_their_history_stays() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("spot").await;
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": false})).await.ok(200);
    let mut events = server.stream(&key).await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    let (stays, _) = server.worker("never-seen").await;
    server.pass(Millis::seconds(3_599)).await;
    server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    server.pass(Millis::seconds(1)).await;
    server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.problem(404, "worker_not_found");
    server.get(&By::Admin, &format!("/api/admin/workers/{stays}")).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["worker_name"]), (&json!("completed"), &json!("spot")));
}

#[tokio::test]
async fn a_drains_deadline_stops_what_runs_and_it_does_not_count() {
    let server = Server::start().await;
    let (id, key, mut events, job) = at_work(&server).await;
    let drain = format!("/api/admin/workers/{id}/drain");
    server.post(&By::Admin, &drain, json!({"deadline_seconds": 2_592_001})).await.problem(422, "out_of_range");
    let view = server.post(&By::Admin, &drain, json!({"reason": "driver", "deadline_seconds": 60})).await.ok(200);
    assert_eq!((&view["draining"], &view["drain_reason"]), (&json!(true), &json!("driver")));
    assert!(view["drain_deadline"].is_string());
    assert!(server.heartbeat(&key, running(&job, 1)).await.stop.is_empty());
    server.pass(Millis::seconds(60)).await;
    let stop = events.of_type("job_cancel").await;
    assert_eq!((&stop["job_id"], &stop["reason"]), (&json!(job), &json!("drained")));
    server.report(&key, &job, json!({"status": "requeue", "attempt": 1, "error": "told to stop"})).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    let (_, _, mut others) = server.online("gpu-2").await;
    assert_eq!(others.offer().await.attempt.0, 2, "it waits for no back-off");
}

#[tokio::test]
async fn a_drain_takes_back_what_was_only_offered() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, _, mut events) = server.online("a").await;
    let job = server.submit("digits").await;
    events.offer().await;
    let (_, _, mut others) = server.online("b").await;
    server.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), "").await.ok(200);
    assert_eq!(others.offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn one_token_serves_one_host_at_a_time() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    let from = async |install: &str| {
        let body = json!({"protocol": 1, "install_id": install, "host": format!("host-{install}")});
        server.post(&key, "/api/workers/register", body).await
    };
    from("a").await.ok(200);
    from("a").await.ok(200);
    from("b").await.problem(409, "token_in_use");
    let mut tx = server.app.core.read().await.expect("a reader");
    let trail = tx.audit_of(&id).await.expect("readable");
    let alarm = trail.last().expect("an entry");
    assert_eq!((alarm.action.as_str(), alarm.detail.as_str()), ("worker.token_in_use", r#"{"host":"host-b"}"#));
    drop(tx);
    for _ in 0..12 {
        server.pass(Millis::seconds(10)).await;
        from("b").await.problem(409, "token_in_use");
    }
    server.pass(Millis::seconds(1)).await;
    from("b").await.ok(200);
}

#[tokio::test]
async fn older_agents_on_two_hosts_do_not_take_turns_for_ever() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    server.post(&key, "/api/workers/register", json!({"name": "x", "gpu_info": {}})).await.ok(200);
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut streams = Vec::new();
    for host in [a, b, a, b] {
        let answer = server.stream_from(&key, host).await;
        assert_eq!(answer.status().as_u16(), 200, "one that moves");
        streams.push(Events::of(answer));
    }
    for _ in 0..2 {
        read(server.stream_from(&key, a).await).await.problem(409, "token_in_use");
        server.clock.advance(Millis::seconds(10));
    }
    let trail = server.app.core.read().await.expect("a database").audit_of(&id).await.expect("readable");
    let alarms = trail.iter().filter(|entry| entry.action == "worker.token_in_use").count();
    assert_eq!(alarms, 2);
    server.config("digits").await;
    let job = server.submit("digits").await;
    let mut holder = streams.pop().expect("the last one");
    assert_eq!(holder.offer().await.job_id.as_str(), job, "who listens is not disturbed");
    assert_eq!(server.stream_from(&key, b).await.status().as_u16(), 200, "nor is its own host");
}

#[tokio::test]
async fn a_job_that_trains_longer_than_it_may_is_stopped_and_has_failed() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let body = json!({"config_name": "digits", "max_runtime_seconds": 60, "retry_on_failure": true});
    let job = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["job_id"].clone();
    let offer = events.offer().await;
    let report = async |status: &str| {
        let path = format!("/api/workers/job/{}/status", offer.job_id);
        server.post(&key, &path, json!({"status": status, "attempt": 1})).await.ok(200)
    };
    report("starting").await;
    server.pass(Millis::seconds(70)).await;
    report("running").await;
    server.pass(Millis::seconds(59)).await;
    let running = json!([{"job_id": job, "attempt": 1}]);
    assert_eq!(server.heartbeat(&key, running.clone()).await.stop, [], "preparing is not training");
    server.pass(Millis::seconds(1)).await;
    let stop = events.of_type("job_cancel").await;
    assert_eq!((&stop["job_id"], &stop["reason"]), (&job, &json!("over_time")));
    assert_eq!(server.heartbeat(&key, running).await.stop.len(), 1);
    report("cancelled").await;
    report("cancelled").await;
    let view = server.job(job.as_str().expect("text")).await;
    assert_eq!((&view["status"], &view["max_runtime_seconds"]), (&json!("failed"), &json!(60)));
    let error = "It was stopped because it trained for 60 s, as long as max_runtime_seconds allows.";
    assert_eq!((&view["error"], &view["attempts"][0]["error"]), (&json!(error), &json!(error)));
}

#[tokio::test]
async fn what_an_agent_leaves_running_is_lost_when_it_does_not_come_back() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    server.call(&key, "POST", "/api/workers/disconnect", "").await.ok(200);
    server.pass(Millis::seconds(120)).await;
    assert_eq!(server.status_of(&job).await, "running", "it has as long as one that fell silent");
    server.pass(Millis::seconds(1)).await;
    assert_eq!(server.status_of(&job).await, "queued");
}
