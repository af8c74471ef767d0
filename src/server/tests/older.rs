//! Agents that send no `protocol`: they say little of themselves, and read no answer but that of their registration.

use app::domain::time::Millis;
use serde_json::json;

use super::harness::{Answer, By, Events, Server, read};

const HERE: [u8; 4] = [10, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [10, 0, 0, 2];

/// Registers as an older agent does, from this address, with what it runs.
async fn register(server: &Server, key: &By, host: [u8; 4], runs: Option<&str>) -> Answer {
    let body = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}, "persistent": true, "current_job_id": runs});
    read(server.send_from(key, host, "POST", "/api/workers/register", body.to_string()).await).await
}

/// Registers, and listens.
async fn connect(server: &Server, key: &By, host: [u8; 4]) -> Events {
    register(server, key, host, None).await.ok(200);
    let answer = server.stream_from(key, host).await;
    assert_eq!(answer.status().as_u16(), 200);
    Events::of(answer)
}

/// An older agent that listens here.
async fn older(server: &Server) -> (String, By, Events) {
    let (id, key) = server.worker("old").await;
    let events = connect(server, &key, HERE).await;
    (id, key, events)
}

async fn report(server: &Server, key: &By, job: &str, status: &str) -> Answer {
    server.report(key, job, json!({"status": status, "error": null})).await
}

/// How often this is on record of a worker.
async fn recorded(server: &Server, worker: &str, action: &str) -> usize {
    let trail = server.app.core.read().await.expect("a database").audit_of(worker).await.expect("readable");
    trail.iter().filter(|entry| entry.action == action).count()
}

#[tokio::test]
async fn twins_that_register_before_they_listen_do_not_take_turns_for_ever() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("old").await;
    let mut streams = Vec::new();
    for host in [HERE, ELSEWHERE, HERE, ELSEWHERE] {
        streams.push(connect(&server, &key, host).await);
    }
    for _ in 0..2 {
        register(&server, &key, HERE, None).await.problem(409, "token_in_use");
        server.clock.advance(Millis::seconds(10));
    }
    assert_eq!(recorded(&server, &id, "worker.token_in_use").await, 2);
    let mut holder = streams.pop().expect("the last one");
    let job = server.submit("digits").await;
    assert_eq!(holder.offer().await.job_id.as_str(), job, "who listens is not disturbed");
    for _ in 0..5 {
        register(&server, &key, ELSEWHERE, Some(&job)).await.ok(200);
        assert_eq!(server.stream_from(&key, ELSEWHERE).await.status().as_u16(), 200, "its own host comes and goes");
    }
}

#[tokio::test]
async fn a_twin_takes_no_job_from_one_that_listens() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    register(&server, &key, ELSEWHERE, None).await.problem(409, "token_in_use");
    assert_eq!(recorded(&server, &id, "worker.token_in_use").await, 1);
    report(&server, &key, &job, "training").await.ok(200);
    for _ in 0..4 {
        register(&server, &key, ELSEWHERE, None).await.problem(409, "token_in_use");
        server.clock.advance(Millis::seconds(20));
    }
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("running"), &json!(1)));
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(events.of_type("job_cancel").await["job_id"], job, "its stream is as it was");
}

#[tokio::test]
async fn an_older_agent_whose_address_changes_keeps_its_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    report(&server, &key, &job, "training").await.ok(200);
    let answer = register(&server, &key, ELSEWHERE, Some(&job)).await.ok(200);
    assert_eq!(answer["resume_job"]["job_id"], job);
    assert_eq!(server.status_of(&job).await, "running");
}

#[tokio::test]
async fn who_does_not_listen_any_more_holds_no_place() {
    let server = Server::start().await;
    let (id, key) = server.worker("old").await;
    for host in [HERE, ELSEWHERE, HERE, ELSEWHERE, HERE, ELSEWHERE] {
        drop(connect(&server, &key, host).await);
        while server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"] != "connecting" {
            tokio::task::yield_now().await;
        }
    }
}
