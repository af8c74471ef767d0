//! Offers to agents of the older protocol, and the meaning of their reports.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::agents::older::{
    AGENT_HOST, connect, connect_older_agent, heartbeat_busy, post, recorded_count, register, report, report_failed,
};
use crate::tests::harness::{Actor, EventStreamReader, TestServer};

async fn store_config(server: &TestServer, name: &str, files: Value) {
    server
        .call(&Actor::Admin, "PUT", &format!("/api/configs/{name}"), json!({"files": files}).to_string())
        .await
        .expect_status(200);
}

/// Submits a job of this configuration; returns the event of its offer.
async fn submit_and_offer(server: &TestServer, events: &mut EventStreamReader, config: &str) -> Value {
    let job = server.submit(config).await;
    let event = events.next_of_type("job_submit").await;
    assert_eq!(event["job_id"], job);
    event
}

#[tokio::test]
async fn data_loader_key_is_always_set() {
    let server = TestServer::start().await;
    store_config(&server, "bare", json!({"config.json": "{}"})).await;
    let (_, _, mut events) = connect_older_agent(&server).await;
    let event = submit_and_offer(&server, &mut events, "bare").await;
    assert_eq!(event.get("dataloader"), Some(&Value::Null), "{event}");
    // What only current agents use is not sent.
    let unknown = [event.get("has_secrets"), event.get("may_have_checkpoint"), event["bundle"].get("body")];
    assert_eq!(unknown, [None; 3], "{event}");
}

#[tokio::test]
async fn data_loader_is_the_configured_one() {
    for (key, path) in
        [("data_backend_config", "config/loaders/mine.json"), ("--data_backend_config", "loaders/mine.json")]
    {
        let server = TestServer::start().await;
        let config = json!({key: path}).to_string();
        let files =
            json!({"config.json": config, "loaders/mine.json": r#"[{"id": "mine"}]"#, "multidatabackend.json": "[]"});
        store_config(&server, "named", files).await;
        let (_, _, mut events) = connect_older_agent(&server).await;
        let event = submit_and_offer(&server, &mut events, "named").await;
        assert_eq!(event["dataloader"], json!([{"id": "mine"}]), "{key}");
    }
}

#[tokio::test]
async fn configuration_with_more_files_requires_newer_agents() {
    let server = TestServer::start().await;
    let config = r#"{"lycoris_config": "/home/ada/config/lycoris_config.json", "prompt": "a cat.txt"}"#;
    store_config(&server, "lycoris", json!({"config.json": config, "lycoris_config.json": "{}"})).await;
    let (id, _, _events) = connect_older_agent(&server).await;
    let dry_run = json!({"config_name": "lycoris", "dry_run": true});
    let preview = server.post(&Actor::Admin, "/api/queue/submit", dry_run).await.expect_status(200);
    assert!(!preview.to_string().contains("Can start now"), "{preview:#}");
    let job = server.submit("lycoris").await;
    assert_eq!(server.job_status(&job).await, "queued");
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{job}/explain")).await.expect_status(200);
    let worker = explained["workers"].as_array().expect("a list").iter().find(|worker| worker["worker_id"] == id);
    let blocker = &worker.expect("each worker is listed")["blockers"][0];
    assert_eq!((&blocker["code"], &blocker["found"]), (&json!("lacks_files"), &json!("lycoris_config.json")));
    let (_, _, mut newer) = server.connect_worker("new").await;
    assert_eq!(newer.next_offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn a_second_agent_on_the_same_host_takes_no_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    for _ in 0..3 {
        register(&server, &key, AGENT_HOST, None).await.expect_problem(409, "token_in_use");
        server.clock.advance(Millis::from_secs(20));
    }
    assert_eq!(recorded_count(&server, &id, "worker.token_in_use").await, 3);
    assert_eq!(server.job_status(&job).await, "running");
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert!(worker["token_conflict"].is_object(), "{worker:#}");
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job, "the stream of the first agent is still open");
}

#[tokio::test]
async fn idle_twins_on_one_host_do_not_take_turns_for_ever() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("old").await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(connect(&server, &key, AGENT_HOST).await);
    }
    for _ in 0..3 {
        register(&server, &key, AGENT_HOST, None).await.expect_problem(409, "token_in_use");
        server.clock.advance(Millis::from_secs(10));
    }
    assert_eq!(recorded_count(&server, &id, "worker.token_in_use").await, 3);
}

#[tokio::test]
async fn next_offer_waits_until_the_agent_is_idle() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    assert_eq!(events.next_offer().await.job_id.as_str(), first);
    report(&server, &key, &first, "training").await.expect_status(200);
    report(&server, &key, &first, "completed").await.expect_status(200);
    assert_eq!(server.job_status(&second).await, "queued", "its agent may not have stopped its trainer yet");
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{second}/explain")).await.expect_status(200);
    let worker = explained["workers"].as_array().expect("a list").iter().find(|worker| worker["worker_id"] == id);
    assert_eq!(worker.expect("each worker is listed")["blockers"][0]["code"], "finishing");
    server.advance(Millis::from_secs(1)).await;
    assert_eq!(server.job_status(&second).await, "queued");
    server.advance(Millis::from_secs(1)).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn agents_that_read_responses_are_idle_immediately() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("new").await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    events.next_offer().await;
    server.report_status(&key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert_eq!(events.next_offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn killed_trainer_is_lost_and_not_failed() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    report_failed(&server, &key, &job, "Training exited with code -15").await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("queued"), &json!(1)), "{view:#}");
    server.advance(Millis::from_secs(60)).await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    report_failed(&server, &key, &job, "Training exited with code 1").await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "failed");
}

#[tokio::test]
async fn cancelled_job_is_cancelled_whatever_signal_ended_it() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    report_failed(&server, &key, &job, "Training exited with code -15").await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "cancelled");
}

#[tokio::test]
async fn agent_that_does_not_start_its_job_loses_it() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    // The agent crashed after the offer, and reconnects with the job.
    register(&server, &key, AGENT_HOST, Some(&job)).await.expect_status(200);
    drop(events);
    let mut events = EventStreamReader::new(server.open_stream_from(&key, AGENT_HOST).await);
    assert_eq!(server.job_status(&job).await, "starting");
    heartbeat_busy(&server, &key, &job).await;
    server.clock.advance(Millis::from_secs(600));
    heartbeat_busy(&server, &key, &job).await;
    server.advance(Millis(0)).await;
    let view = server.job(&job).await;
    assert_eq!(view["status"], "queued", "{view:#}");
    heartbeat_busy(&server, &key, &job).await;
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job, "it is asked to stop");
    assert_eq!(recorded_count(&server, &id, "worker.unassigned_run").await, 1);
}

#[tokio::test]
async fn agent_of_a_retired_ephemeral_worker_is_stopped() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let body = json!({"name": "once", "worker_type": "ephemeral"});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let key = Actor::worker(created["token"].as_str().expect("text"));
    let mut events = connect(&server, &key, AGENT_HOST).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    report(&server, &key, &job, "completed").await.expect_status(200);
    assert_eq!(events.next_of_type("shutdown").await["reason"], "This ephemeral worker has run its job.");
    let again = post(&server, &key, "/api/workers/register", json!({"gpu_info": {}})).await;
    assert!(!again.status.is_success(), "its token is revoked");
}
