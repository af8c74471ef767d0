//! What agents of the older protocol are given, when, and what their reports of an end mean.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Events, Server};
use super::older::{HERE, busy, connect, older, post, recorded, register, report, report_failed};

async fn store(server: &Server, name: &str, files: Value) {
    server.call(&By::Admin, "PUT", &format!("/api/configs/{name}"), json!({"files": files}).to_string()).await.ok(200);
}

/// The event of an offer of this configuration's job, as it is sent.
async fn offered(server: &Server, events: &mut Events, config: &str) -> Value {
    let job = server.submit(config).await;
    let event = events.of_type("job_submit").await;
    assert_eq!(event["job_id"], job);
    event
}

#[tokio::test]
async fn the_key_of_the_data_loader_is_always_there() {
    let server = Server::start().await;
    store(&server, "bare", json!({"config.json": "{}"})).await;
    let (_, _, mut events) = older(&server).await;
    let event = offered(&server, &mut events, "bare").await;
    assert_eq!(event.get("dataloader"), Some(&Value::Null), "{event}");
}

#[tokio::test]
async fn the_data_loader_is_the_one_that_the_configuration_names() {
    for (key, path) in
        [("data_backend_config", "config/loaders/mine.json"), ("--data_backend_config", "loaders/mine.json")]
    {
        let server = Server::start().await;
        let config = json!({key: path}).to_string();
        let files =
            json!({"config.json": config, "loaders/mine.json": r#"[{"id": "mine"}]"#, "multidatabackend.json": "[]"});
        store(&server, "named", files).await;
        let (_, _, mut events) = older(&server).await;
        let event = offered(&server, &mut events, "named").await;
        assert_eq!(event["dataloader"], json!([{"id": "mine"}]), "{key}");
    }
}

#[tokio::test]
async fn a_configuration_with_more_files_is_for_newer_agents() {
    let server = Server::start().await;
    let config = r#"{"lycoris_config": "/home/ada/config/lycoris_config.json", "prompt": "a cat.txt"}"#;
    store(&server, "lycoris", json!({"config.json": config, "lycoris_config.json": "{}"})).await;
    let (id, _, _events) = older(&server).await;
    let dry = json!({"config_name": "lycoris", "dry_run": true});
    let preview = server.post(&By::Admin, "/api/queue/submit", dry).await.ok(200);
    assert!(!preview.to_string().contains("takes it now"), "{preview:#}");
    let job = server.submit("lycoris").await;
    assert_eq!(server.status_of(&job).await, "queued");
    let explained = server.get(&By::Admin, &format!("/api/queue/{job}/explain")).await.ok(200);
    let says = explained["workers"].as_array().expect("a list").iter().find(|says| says["worker_id"] == id);
    let blocker = &says.expect("every worker answers")["blockers"][0];
    assert_eq!((&blocker["code"], &blocker["found"]), (&json!("lacks_files"), &json!("lycoris_config.json")));
    let (_, _, mut newer) = server.online("new").await;
    assert_eq!(newer.offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn a_second_agent_on_the_same_host_takes_no_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    for _ in 0..3 {
        register(&server, &key, HERE, None).await.problem(409, "token_in_use");
        server.clock.advance(Millis::seconds(20));
    }
    assert_eq!(recorded(&server, &id, "worker.token_in_use").await, 3);
    assert_eq!(server.status_of(&job).await, "running");
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert!(worker["token_conflict"].is_object(), "{worker:#}");
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(events.of_type("job_cancel").await["job_id"], job, "the stream of the first is as it was");
}

#[tokio::test]
async fn idle_twins_on_one_host_do_not_take_turns_for_ever() {
    let server = Server::start().await;
    let (id, key) = server.worker("old").await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(connect(&server, &key, HERE).await);
    }
    for _ in 0..3 {
        register(&server, &key, HERE, None).await.problem(409, "token_in_use");
        server.clock.advance(Millis::seconds(10));
    }
    assert_eq!(recorded(&server, &id, "worker.token_in_use").await, 3);
}

#[tokio::test]
async fn the_next_offer_waits_until_the_agent_is_free() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    assert_eq!(events.offer().await.job_id.as_str(), first);
    report(&server, &key, &first, "training").await.ok(200);
    report(&server, &key, &first, "completed").await.ok(200);
    assert_eq!(server.status_of(&second).await, "queued", "its agent has not read the answer yet");
    let explained = server.get(&By::Admin, &format!("/api/queue/{second}/explain")).await.ok(200);
    let says = explained["workers"].as_array().expect("a list").iter().find(|says| says["worker_id"] == id);
    assert_eq!(says.expect("every worker answers")["blockers"][0]["code"], "finishing");
    server.pass(Millis::seconds(1)).await;
    assert_eq!(server.status_of(&second).await, "queued");
    server.pass(Millis::seconds(1)).await;
    assert_eq!(events.offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn the_agents_that_read_answers_are_free_at_once() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("new").await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    events.offer().await;
    server.report(&key, &first, json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert_eq!(events.offer().await.job_id.as_str(), second);
}

#[tokio::test]
async fn a_trainer_that_somebody_killed_is_lost_and_not_failed() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    report_failed(&server, &key, &job, "Training exited with code -15").await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("queued"), &json!(1)), "{view:#}");
    server.pass(Millis::seconds(60)).await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    report_failed(&server, &key, &job, "Training exited with code 1").await.ok(200);
    assert_eq!(server.status_of(&job).await, "failed");
}

#[tokio::test]
async fn what_was_cancelled_is_cancelled_whatever_signal_ended_it() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    report_failed(&server, &key, &job, "Training exited with code -15").await.ok(200);
    assert_eq!(server.status_of(&job).await, "cancelled");
}

#[tokio::test]
async fn an_agent_that_took_a_job_and_starts_nothing_loses_it() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    // It came to grief over the offer, and connects again with it.
    register(&server, &key, HERE, Some(&job)).await.ok(200);
    drop(events);
    let mut events = Events::of(server.stream_from(&key, HERE).await);
    assert_eq!(server.status_of(&job).await, "starting");
    busy(&server, &key, &job).await;
    server.clock.advance(Millis::seconds(600));
    busy(&server, &key, &job).await;
    server.pass(Millis(0)).await;
    let view = server.job(&job).await;
    assert_eq!(view["status"], "queued", "{view:#}");
    busy(&server, &key, &job).await;
    assert_eq!(events.of_type("job_cancel").await["job_id"], job, "it is told to let go");
    assert_eq!(recorded(&server, &id, "worker.astray").await, 1);
}

#[tokio::test]
async fn the_agent_of_a_spent_ephemeral_worker_is_told_to_end() {
    let server = Server::start().await;
    server.config("digits").await;
    let body = json!({"name": "once", "worker_type": "ephemeral"});
    let made = server.post(&By::Admin, "/api/admin/workers", body).await.ok(201);
    let key = By::worker(made["token"].as_str().expect("text"));
    let mut events = connect(&server, &key, HERE).await;
    let job = server.submit("digits").await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    report(&server, &key, &job, "completed").await.ok(200);
    assert_eq!(events.of_type("shutdown").await["reason"], "This ephemeral worker has run its job.");
    let again = post(&server, &key, "/api/workers/register", json!({"gpu_info": {}})).await;
    assert!(!again.status.is_success(), "its token opens nothing");
}
