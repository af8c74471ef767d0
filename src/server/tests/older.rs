//! Agents that send no `protocol`: they say little of themselves, and read no answer but that of their registration.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{Answer, By, Events, Server, read};

pub const HERE: [u8; 4] = [10, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [10, 0, 0, 2];

/// Registers as an older agent does, from this address, with what it runs.
pub async fn register(server: &Server, key: &By, host: [u8; 4], runs: Option<&str>) -> Answer {
    let body = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}, "persistent": true, "current_job_id": runs});
    read(server.send_from(key, host, "POST", "/api/workers/register", body.to_string()).await).await
}

/// Registers, and listens.
pub async fn connect(server: &Server, key: &By, host: [u8; 4]) -> Events {
    register(server, key, host, None).await.ok(200);
    let answer = server.stream_from(key, host).await;
    assert_eq!(answer.status().as_u16(), 200);
    Events::of(answer)
}

/// Until the server has seen the end of the worker's stream.
async fn until_gone(server: &Server, worker: &str) {
    while server.get(&By::Admin, &format!("/api/admin/workers/{worker}")).await.ok(200)["status"] != "connecting" {
        tokio::task::yield_now().await;
    }
}

/// An older agent that listens here.
pub async fn older(server: &Server) -> (String, By, Events) {
    let (id, key) = server.worker("old").await;
    let events = connect(server, &key, HERE).await;
    (id, key, events)
}

/// Sends what an older agent sends from its host.
pub async fn post(server: &Server, key: &By, path: &str, body: Value) -> Answer {
    read(server.send_from(key, HERE, "POST", path, body.to_string()).await).await
}

pub async fn busy(server: &Server, key: &By, job: &str) {
    post(server, key, "/api/workers/heartbeat", json!({"status": "busy", "current_job_id": job})).await.ok(200);
}

async fn idle(server: &Server, key: &By) {
    post(server, key, "/api/workers/heartbeat", json!({"status": "idle", "current_job_id": null})).await.ok(200);
}

pub async fn report(server: &Server, key: &By, job: &str, status: &str) -> Answer {
    post(server, key, &format!("/api/workers/job/{job}/status"), json!({"status": status, "error": null})).await
}

/// Its report of a trainer that ended badly.
pub async fn report_failed(server: &Server, key: &By, job: &str, error: &str) -> Answer {
    post(server, key, &format!("/api/workers/job/{job}/status"), json!({"status": "failed", "error": error})).await
}

/// A job that was cancelled while it was offered; the agent that was offered it does not know.
async fn cancelled_offer(server: &Server, events: &mut Events) -> String {
    let job = server.submit("digits").await;
    assert_eq!(events.offer().await.job_id.as_str(), job);
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    job
}

/// How often this is on record of a worker.
pub async fn recorded(server: &Server, worker: &str, action: &str) -> usize {
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
        until_gone(&server, &id).await;
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
        until_gone(&server, &id).await;
    }
}

#[tokio::test]
async fn what_an_older_agent_runs_without_holding_it_is_stopped() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, other_key, mut others) = server.online("other").await;
    let first = server.submit("digits").await;
    others.offer().await;
    server.report(&other_key, &first, json!({"status": "running", "attempt": 1})).await.ok(200);
    server.clock.advance(Millis::seconds(1));
    let (id, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    // Its report is lost; the job goes to another.
    server.report(&other_key, &first, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.pass(Millis::seconds(30)).await;
    assert_eq!(others.offer().await.attempt.0, 2);
    server.report(&other_key, &job, json!({"status": "running", "attempt": 2})).await.ok(200);
    for _ in 0..3 {
        busy(&server, &key, &job).await;
        let stop = events.of_type("job_cancel").await;
        assert_eq!((&stop["job_id"], &stop["reason"]), (&json!(job), &json!("superseded")), "until it stops");
    }
    assert_eq!(recorded(&server, &id, "worker.astray").await, 1, "what is known is not written again");
    assert_eq!(server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "busy");
    let next = server.submit("digits").await;
    let explained = server.get(&By::Admin, &format!("/api/queue/{next}/explain")).await.ok(200);
    let says = explained["workers"].as_array().expect("a list").iter().find(|says| says["worker_id"] == id);
    let blocker = &says.expect("every worker answers")["blockers"][0];
    let text = format!("Its agent trains {job}, which it does not hold; it was told to stop.");
    assert_eq!((&blocker["code"], &blocker["text"]), (&json!("astray"), &json!(text)));
    idle(&server, &key).await;
    assert_eq!(only_offer(&mut events).await, next, "nothing is cancelled after a newer offer");
    assert_eq!(server.status_of(&job).await, "running", "where it belongs, it goes on");
}

/// The job of the next offer, before which nothing is cancelled.
async fn only_offer(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("the stream is open");
        assert_ne!(event["type"], "job_cancel", "{event}");
        if event["type"] == "job_submit" {
            return event["job_id"].clone();
        }
    }
}

#[tokio::test]
async fn a_refused_report_is_answered_by_the_stream() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let job = cancelled_offer(&server, &mut events).await;
    report(&server, &key, &job, "starting").await.problem(409, "job_ended");
    report(&server, &key, &job, "training").await.problem(409, "job_ended");
    assert_eq!(events.of_type("job_cancel").await["job_id"], job);
    assert_eq!(recorded(&server, &id, "worker.astray").await, 1);
    let next = server.submit("digits").await;
    assert_eq!(server.status_of(&next).await, "queued");
    report(&server, &key, &job, "failed").await.problem(409, "job_ended");
    assert_eq!(only_offer(&mut events).await, next);
    report(&server, &key, "j_none", "training").await.problem(404, "job_not_found");
    assert_eq!(recorded(&server, &id, "worker.astray").await, 3, "it said that it runs what nobody knows of");
    report(&server, &key, &next, "starting").await.ok(200);
    report(&server, &key, &next, "completed").await.ok(200);
    server.pass(Millis::seconds(2)).await;
    let last = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, last);
}

#[tokio::test]
async fn what_is_offered_meanwhile_is_not_cancelled_but_runs_out() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = older(&server).await;
    let job = cancelled_offer(&server, &mut events).await;
    let next = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, next);
    busy(&server, &key, &job).await;
    server.pass(Millis::seconds(29)).await;
    assert_eq!(server.status_of(&next).await, "offered");
    server.pass(Millis::seconds(1)).await;
    assert_eq!(server.status_of(&next).await, "queued", "who is astray is offered nothing");
    assert_eq!(events.of_type("job_cancel").await["job_id"], job);
    idle(&server, &key).await;
    assert_eq!(only_offer(&mut events).await, next);
}

#[tokio::test]
async fn who_has_taken_a_job_is_not_astray() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let old = cancelled_offer(&server, &mut events).await;
    let job = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, job);
    report(&server, &key, &job, "starting").await.ok(200);
    busy(&server, &key, &old).await;
    report(&server, &key, &old, "training").await.problem(409, "job_ended");
    assert_eq!(recorded(&server, &id, "worker.astray").await, 0);
    report(&server, &key, &job, "completed").await.ok(200);
    server.pass(Millis::seconds(2)).await;
    let next = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, next);
}

#[tokio::test]
async fn a_heartbeat_takes_an_offer_whose_reports_were_lost() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    busy(&server, &key, &job).await;
    server.pass(Millis::seconds(40)).await;
    assert_eq!(server.status_of(&job).await, "starting");
    report(&server, &key, &job, "completed").await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("completed"), &json!(1)));
    assert_eq!(recorded(&server, &id, "worker.astray").await, 0);
}

#[tokio::test]
async fn a_refused_report_takes_no_newer_offer_of_the_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.pass(Millis::seconds(30)).await;
    assert_eq!(events.offer().await.attempt.0, 2);
    let old = json!({"status": "starting", "attempt": 1});
    post(&server, &key, &format!("/api/workers/job/{job}/status"), old).await.problem(409, "old_attempt");
    assert_eq!(server.status_of(&job).await, "offered");
}
