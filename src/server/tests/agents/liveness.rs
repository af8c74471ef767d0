//! Offline workers, their jobs, and the end of a drain.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestServer, read_response};
use crate::tests::ui::pages::{log_in, page};

fn running_claims(job: &str, attempt: u32) -> Value {
    json!([{"job_id": job, "attempt": attempt}])
}

#[tokio::test]
async fn job_of_a_silent_worker_goes_to_another() {
    let server = TestServer::start().await;
    let (id, _, _events, job) = server.connect_busy_worker().await;
    server.advance(Millis::from_secs(120)).await;
    assert_eq!(server.job_status(&job).await, "running", "the timeout is not over");
    server.advance(Millis::from_secs(1)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    assert_eq!(
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"],
        "offline"
    );
    let (_, _, mut other_events) = server.connect_worker("gpu-2").await;
    server.advance(Millis::from_secs(10)).await;
    let offer = other_events.next_offer().await;
    assert_eq!((offer.job_id.as_str(), offer.attempt.0), (job.as_str(), 2));
}

#[tokio::test]
async fn all_workers_are_checked_for_silence() {
    const OTHERS: usize = 130;
    let server = TestServer::start().await;
    let (oldest, _, _events, job) = server.connect_busy_worker().await;
    for n in 0..OTHERS {
        let (_, key) = server.create_worker(&format!("other-{n}")).await;
        server.register(&key, json!([])).await;
        if n % 2 == 0 {
            server.get(&key, "/api/workers/next?wait=0").await.expect_status(200);
        }
    }
    let listed = async || server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    let counts = listed().await["counts"].clone();
    assert_eq!(counts, json!({"busy": 1, "connecting": OTHERS / 2, "draining": 0, "idle": OTHERS / 2, "offline": 0}));
    server.clock.advance(Millis::from_secs(121));
    let checked = server.app.services.agents.check_health().await.expect("a database");
    assert_eq!((checked.offline, checked.failed), (OTHERS + 1, 0), "in one pass");
    let page = listed().await;
    assert_eq!((&page["total"], &page["counts"]["offline"]), (&json!(OTHERS + 1), &json!(OTHERS + 1)));
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{oldest}")).await.expect_status(200);
    assert_eq!((&view["status"], server.job_status(&job).await.as_str()), (&json!("offline"), "queued"));
}

#[tokio::test]
async fn suspended_server_does_not_mark_workers_offline() {
    let server = TestServer::start().await;
    let (_, key, _events, job) = server.connect_busy_worker().await;
    server.clock.sleep(Millis::from_secs(8 * 3_600));
    server.advance(Millis::from_secs(100)).await;
    assert_eq!(server.job_status(&job).await, "running", "heartbeats may have arrived while the server was suspended");
    server.heartbeat(&key, running_claims(&job, 1)).await;
    server.advance(Millis::from_secs(119)).await;
    assert_eq!(server.job_status(&job).await, "running");
    server.advance(Millis::from_secs(2)).await;
    assert_eq!(server.job_status(&job).await, "queued", "now it is silent");
}

#[tokio::test]
async fn heartbeats_keep_a_worker_online() {
    let server = TestServer::start().await;
    let (_, key, _events, job) = server.connect_busy_worker().await;
    for _ in 0..10 {
        server.advance(Millis::from_secs(100)).await;
        server.heartbeat(&key, running_claims(&job, 1)).await;
    }
    assert_eq!(server.job_status(&job).await, "running");
}

#[tokio::test]
async fn returning_worker_keeps_its_job_within_the_timeout() {
    let server = TestServer::start().await;
    let (_, key, _events, job) = server.connect_busy_worker().await;
    server.advance(Millis::from_secs(500)).await;
    assert_eq!(server.job_status(&job).await, "queued");
    server
        .post(&key, "/api/workers/heartbeat", json!({"attempts": running_claims(&job, 1)}))
        .await
        .expect_problem(409, "not_registered");
    server.register(&key, running_claims(&job, 1)).await;
    let view = server.job(&job).await;
    assert_eq!(
        (&view["status"], &view["attempt"]),
        (&json!("running"), &json!(1)),
        "no other worker has the job: the attempt is recovered"
    );
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
}

#[tokio::test]
async fn exhausted_retries_fail_with_the_reason() {
    let server = TestServer::start().await;
    let (id, key, mut events, job) = server.connect_busy_worker().await;
    for attempt in 1..=4 {
        server.advance(Millis::from_secs(121)).await;
        if attempt < 4 {
            assert_eq!(server.job_status(&job).await, "queued", "attempt {attempt} is retried");
            server.register(&key, json!([])).await;
            events = server.open_stream(&key).await;
            server.advance(Millis::from_secs(100)).await;
            events.next_offer().await;
            server
                .report_status(&key, &job, json!({"status": "running", "attempt": attempt + 1}))
                .await
                .expect_status(200);
        }
    }
    drop(events);
    let view = server.job(&job).await;
    assert_eq!(view["status"], "failed");
    let error = view["error"].as_str().expect("a reason");
    assert!(error.contains("No retries left") && error.contains("went offline"), "{error}");
    assert_eq!(view["loss_code"], "heartbeat_timeout");
    let reader = format!("{}; language=ja", log_in(&server).await);
    let html = page(&server, &reader, &format!("/jobs/{job}/events")).await.replace("<!>", "");
    assert!(html.contains("失敗") && html.contains("ハートビートのタイムアウト）。</p>"), "{html}");
    assert_eq!(view["attempts"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"],
        "offline"
    );
}

/// Loses the only attempt of a job. Checks the code and the text of the reason, and the sentence of Japanese pages.
async fn check_loss(disconnects: bool, code: &str, text: &str, sentence: &str) {
    let server = TestServer::start().await;
    let (id, key, _events, job) = server.connect_busy_worker().await;
    if disconnects {
        let body = json!({"left_running": running_claims(&job, 1)});
        server.post(&key, "/api/workers/disconnect", body).await.expect_status(200);
        assert_eq!(server.job_status(&job).await, "running", "its agent may reconnect");
    }
    server.advance(Millis::from_secs(121)).await;
    let view = server.job(&job).await;
    let attempt = &view["attempts"][0];
    assert_eq!((&view["status"], &view["loss_code"]), (&json!("queued"), &json!(code)));
    assert_eq!((&attempt["loss_code"], &attempt["error"]), (&json!(code), &view["error"]));
    assert_eq!(view["error"], text);
    let attempts = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}/attempts")).await.expect_status(200);
    assert_eq!(attempts["attempts"][0]["loss_code"], code);
    let detail = async |action: &str, target: &str| {
        let path = format!("/api/audit?action={action}&target={target}");
        server.get(&Actor::Admin, &path).await.expect_status(200)["entries"][0]["detail"].clone()
    };
    let requeued = detail("job.requeued", &job).await;
    assert_eq!((&requeued["loss_code"], &requeued["reason"]), (&json!(code), &json!(text)));
    assert_eq!(detail("worker.offline", &id).await["cause"], code);
    let reader = format!("{}; language=ja", log_in(&server).await);
    for (path, end_tag) in [
        (format!("/jobs/{job}"), "</span>"),
        (format!("/jobs/{job}/events"), "</p>"),
        ("/jobs".to_owned(), "</span>"),
        (format!("/admin/workers/{id}/jobs"), "</span>"),
    ] {
        let html = page(&server, &reader, &path).await.replace("<!>", "");
        // A page contains all sentences of its language; this one is also the end of an element.
        assert!(html.contains(&format!("{sentence}{end_tag}")), "{path}: {html}");
    }
}

#[tokio::test]
async fn loss_by_silence_has_its_code_and_sentence() {
    let text = "The worker went offline: its heartbeats stopped (heartbeat timeout).";
    check_loss(false, "heartbeat_timeout", text, "ハートビートが途絶えました（ハートビートのタイムアウト）。").await;
}

#[tokio::test]
async fn loss_after_a_disconnect_has_its_code_and_sentence() {
    let text = "The worker went offline: its agent disconnected.";
    check_loss(true, "disconnected", text, "エージェントが切断しました。").await;
}

#[tokio::test]
async fn cancel_of_a_silent_workers_job_succeeds() {
    let server = TestServer::start().await;
    let (_, _, _events, job) = server.connect_busy_worker().await;
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "cancelling");
    server.advance(Millis::from_secs(121)).await;
    assert_eq!(server.job_status(&job).await, "cancelled");
}

#[tokio::test]
async fn open_stream_keeps_an_older_agent_online() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("old").await;
    let gpu = json!({"name": "A100", "vram_gb": 80.0, "count": 1, "accelerator": "cuda"});
    server
        .post(&key, "/api/workers/register", json!({"name": "old", "gpu_info": gpu, "persistent": true}))
        .await
        .expect_status(200);
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    let status = async || {
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"].clone()
    };
    server.advance(Millis::from_secs(10_000)).await;
    assert_eq!(status().await, "idle");
    drop(events);
    while status().await != "connecting" {
        tokio::task::yield_now().await;
    }
    server.advance(Millis::from_secs(121)).await;
    assert_eq!(status().await, "offline");
}

#[tokio::test]
async fn offline_ephemeral_workers_are_removed_but_their_history_stays() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("spot").await;
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": false})).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let (unconnected, _) = server.create_worker("never-seen").await;
    server.advance(Millis::from_secs(3_599)).await;
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    server.advance(Millis::from_secs(1)).await;
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_problem(404, "worker_not_found");
    server.get(&Actor::Admin, &format!("/api/admin/workers/{unconnected}")).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["worker_name"]), (&json!("completed"), &json!("spot")));
}

#[tokio::test]
async fn ephemeral_worker_that_never_connected_is_listed_until_it_is_deleted() {
    let server = TestServer::start().await;
    let body = json!({"name": "once", "worker_type": "ephemeral"});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let id = created["worker_id"].as_str().expect("text");
    // Longer than an unused token is valid.
    server.advance(Millis::from_secs(31 * 86_400)).await;
    let list = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    let worker = &list["workers"][0];
    assert_eq!((&worker["id"], &worker["worker_type"]), (&json!(id), &json!("ephemeral")));
    assert_eq!((&worker["status"], &worker["last_heartbeat"]), (&json!("offline"), &json!(null)));
    let found = server.get(&Actor::Admin, "/api/admin/workers?q=status:never").await.expect_status(200);
    assert_eq!((&found["total"], &found["workers"][0]["id"]), (&json!(1), &json!(id)));
    let page = server.get(&Actor::Admin, &format!("/admin/workers/{id}")).await.text();
    assert!(page.contains("Never connected"), "{page}");
    let guide = include_str!("../../../../docs/WORKER.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "A worker that has never connected stays in the list until an admin deletes it";
    assert!(guide.contains(sentence), "docs/WORKER.md does not say: {sentence}");
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{id}"), "").await.expect_status(200);
    assert_eq!(server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn drain_deadline_stops_jobs_without_counting_a_retry() {
    let server = TestServer::start().await;
    let (id, key, mut events, job) = server.connect_busy_worker().await;
    let drain = format!("/api/admin/workers/{id}/drain");
    server
        .post(&Actor::Admin, &drain, json!({"deadline_seconds": 2_592_001}))
        .await
        .expect_problem(422, "out_of_range");
    let view = server
        .post(&Actor::Admin, &drain, json!({"reason": "driver", "deadline_seconds": 60}))
        .await
        .expect_status(200);
    assert_eq!((&view["draining"], &view["drain_reason"]), (&json!(true), &json!("driver")));
    assert!(view["drain_deadline"].is_string());
    assert!(server.heartbeat(&key, running_claims(&job, 1)).await.stop.is_empty());
    server.advance(Millis::from_secs(60)).await;
    let stop = events.next_of_type("job_cancel").await;
    assert_eq!((&stop["job_id"], &stop["reason"]), (&json!(job), &json!("drained")));
    server
        .report_status(&key, &job, json!({"status": "requeue", "attempt": 1, "error": "asked to stop"}))
        .await
        .expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempts"][0]["outcome"]), (&json!("queued"), &json!("lost")));
    let (_, _, mut other_events) = server.connect_worker("gpu-2").await;
    assert_eq!(other_events.next_offer().await.attempt.0, 2, "a drain causes no back-off");
}

#[tokio::test]
async fn drain_withdraws_offers() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, _, mut events) = server.connect_worker("a").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    let (_, _, mut other_events) = server.connect_worker("b").await;
    server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), "").await.expect_status(200);
    assert_eq!(other_events.next_offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn token_is_used_by_one_host_at_a_time() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let register_from = async |install: &str| {
        let body = json!({"protocol": 1, "install_id": install, "host": format!("host-{install}")});
        server.post(&key, "/api/workers/register", body).await
    };
    register_from("a").await.expect_status(200);
    register_from("a").await.expect_status(200);
    register_from("b").await.expect_problem(409, "token_in_use");
    let mut tx = server.app.services.context.read().await.expect("a reader");
    let audit_log = tx.audit_of_target(&id).await.expect("readable");
    let entry = audit_log.last().expect("an entry");
    assert_eq!((entry.action.as_str(), entry.detail.as_str()), ("worker.token_in_use", r#"{"host":"host-b"}"#));
    drop(tx);
    for _ in 0..12 {
        server.advance(Millis::from_secs(10)).await;
        register_from("b").await.expect_problem(409, "token_in_use");
    }
    server.advance(Millis::from_secs(1)).await;
    register_from("b").await.expect_status(200);
}

/// The former host may have received the offer, and only be slow.
#[tokio::test]
async fn offer_to_a_former_host_is_not_accepted_by_two() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key) = server.create_worker("gpu-1").await;
    let register_from = async |install: &str| {
        let body = json!({"protocol": 1, "persistent": true, "install_id": install, "accelerator_type": "cpu"});
        server.post(&key, "/api/workers/register", body).await.expect_status(200)
    };
    register_from("a").await;
    let mut events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    let former_host = Actor::Job(events.next_offer().await.upload_token);
    server.clock.advance(Millis::from_secs(121));
    register_from("b").await;
    assert_eq!(server.job_status(&job).await, "queued", "the offer has ended");
    server
        .report_status(&former_host, &job, json!({"status": "starting", "attempt": 1}))
        .await
        .expect_problem(409, "not_your_attempt");
    let mut events = server.open_stream(&key).await;
    assert_eq!(events.next_offer().await.attempt.0, 2, "the new host gets its own attempt");
}

#[tokio::test]
async fn older_agents_on_two_hosts_do_not_alternate() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    server.post(&key, "/api/workers/register", json!({"name": "x", "gpu_info": {}})).await.expect_status(200);
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut streams = Vec::new();
    for host in [a, b, a, b] {
        let response = server.open_stream_from(&key, host).await;
        assert_eq!(response.status().as_u16(), 200, "a host without a conflict may connect");
        streams.push(EventStreamReader::new(response));
    }
    for _ in 0..2 {
        read_response(server.open_stream_from(&key, a).await).await.expect_problem(409, "token_in_use");
        server.clock.advance(Millis::from_secs(10));
    }
    let audit_log =
        server.app.services.context.read().await.expect("a database").audit_of_target(&id).await.expect("readable");
    let conflicts = audit_log.iter().filter(|entry| entry.action == "worker.token_in_use").count();
    assert_eq!(conflicts, 2);
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let mut connected = streams.pop().expect("the last one");
    assert_eq!(connected.next_offer().await.job_id.as_str(), job, "the connected agent keeps its stream");
    assert_eq!(server.open_stream_from(&key, b).await.status().as_u16(), 200, "its own host can reconnect");
}

#[tokio::test]
async fn job_over_its_time_limit_is_stopped_and_fails() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let body = json!({"config_name": "digits", "max_runtime_seconds": 60, "retry_on_failure": true});
    let job = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
    let offer = events.next_offer().await;
    let report = async |status: &str| {
        let path = format!("/api/workers/job/{}/status", offer.job_id);
        server.post(&key, &path, json!({"status": status, "attempt": 1})).await.expect_status(200)
    };
    report("starting").await;
    server.advance(Millis::from_secs(70)).await;
    report("running").await;
    server.advance(Millis::from_secs(59)).await;
    let running = json!([{"job_id": job, "attempt": 1}]);
    assert_eq!(server.heartbeat(&key, running.clone()).await.stop, [], "the preparation does not count");
    server.advance(Millis::from_secs(1)).await;
    let stop = events.next_of_type("job_cancel").await;
    assert_eq!((&stop["job_id"], &stop["reason"]), (&job, &json!("over_time")));
    assert_eq!(server.heartbeat(&key, running).await.stop.len(), 1);
    report("cancelled").await;
    report("cancelled").await;
    let view = server.job(job.as_str().expect("text")).await;
    assert_eq!((&view["status"], &view["max_runtime_seconds"]), (&json!("failed"), &json!(60)));
    let error = "Stopped after 60 s: max_runtime_seconds was reached.";
    assert_eq!((&view["error"], &view["attempts"][0]["error"]), (&json!(error), &json!(error)));
}

#[tokio::test]
async fn attempt_left_running_is_lost_without_a_reconnect() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.call(&key, "POST", "/api/workers/disconnect", "").await.expect_status(200);
    server.advance(Millis::from_secs(120)).await;
    assert_eq!(server.job_status(&job).await, "running", "it is lost only after the heartbeat timeout");
    server.advance(Millis::from_secs(1)).await;
    assert_eq!(server.job_status(&job).await, "queued");
}
