//! Agents that send no `protocol`: they report little, and ignore all responses except that of their registration.

use app::domain::ids::WorkerId;
use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestResponse, TestServer, read_response};

pub const AGENT_HOST: [u8; 4] = [10, 0, 0, 1];
const OTHER_HOST: [u8; 4] = [10, 0, 0, 2];

/// Registers like an older agent, from this address, with the job it runs.
pub async fn register(server: &TestServer, key: &Actor, host: [u8; 4], current_job: Option<&str>) -> TestResponse {
    let body =
        json!({"name": "x", "gpu_info": {"accelerator": "cpu"}, "persistent": true, "current_job_id": current_job});
    read_response(server.send_from(key, host, "POST", "/api/workers/register", body.to_string()).await).await
}

/// Registers and opens the stream.
pub async fn connect(server: &TestServer, key: &Actor, host: [u8; 4]) -> EventStreamReader {
    register(server, key, host, None).await.expect_status(200);
    let response = server.open_stream_from(key, host).await;
    assert_eq!(response.status().as_u16(), 200);
    EventStreamReader::new(response)
}

/// Waits until the server has noticed the end of the worker's stream.
pub async fn wait_until_disconnected(server: &TestServer, worker: &str) {
    let id = WorkerId::parse(worker).expect("an id");
    loop {
        let stored = server.app.services.context.read().await.expect("a database").worker(&id).await.expect("readable");
        if stored.expect("the worker").worker.stream_id().is_none() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// An older agent with an open stream.
pub async fn connect_older_agent(server: &TestServer) -> (String, Actor, EventStreamReader) {
    let (id, key) = server.create_worker("old").await;
    let events = connect(server, &key, AGENT_HOST).await;
    (id, key, events)
}

/// Sends a request of an older agent from its host.
pub async fn post(server: &TestServer, key: &Actor, path: &str, body: Value) -> TestResponse {
    read_response(server.send_from(key, AGENT_HOST, "POST", path, body.to_string()).await).await
}

pub async fn heartbeat_busy(server: &TestServer, key: &Actor, job: &str) {
    post(server, key, "/api/workers/heartbeat", json!({"status": "busy", "current_job_id": job}))
        .await
        .expect_status(200);
}

async fn heartbeat_idle(server: &TestServer, key: &Actor) {
    post(server, key, "/api/workers/heartbeat", json!({"status": "idle", "current_job_id": null}))
        .await
        .expect_status(200);
}

pub async fn report(server: &TestServer, key: &Actor, job: &str, status: &str) -> TestResponse {
    post(server, key, &format!("/api/workers/job/{job}/status"), json!({"status": status, "error": null})).await
}

/// Reports a failed trainer.
pub async fn report_failed(server: &TestServer, key: &Actor, job: &str, error: &str) -> TestResponse {
    post(server, key, &format!("/api/workers/job/{job}/status"), json!({"status": "failed", "error": error})).await
}

/// A job that was cancelled while it was offered; its agent does not know.
async fn cancelled_offer(server: &TestServer, events: &mut EventStreamReader) -> String {
    let job = server.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    job
}

/// Counts the audit entries of a worker with this action.
pub async fn recorded_count(server: &TestServer, worker: &str, action: &str) -> usize {
    let audit_log =
        server.app.services.context.read().await.expect("a database").audit_of_target(worker).await.expect("readable");
    audit_log.iter().filter(|entry| entry.action == action).count()
}

#[tokio::test]
async fn twins_that_register_before_streaming_do_not_alternate() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("old").await;
    let mut streams = Vec::new();
    for host in [AGENT_HOST, OTHER_HOST, AGENT_HOST, OTHER_HOST] {
        streams.push(connect(&server, &key, host).await);
    }
    for _ in 0..2 {
        register(&server, &key, AGENT_HOST, None).await.expect_problem(409, "token_in_use");
        server.clock.advance(Millis::from_secs(10));
    }
    assert_eq!(recorded_count(&server, &id, "worker.token_in_use").await, 2);
    let mut connected = streams.pop().expect("the last one");
    let job = server.submit("digits").await;
    assert_eq!(connected.next_offer().await.job_id.as_str(), job, "the connected agent keeps its stream");
    for _ in 0..5 {
        register(&server, &key, OTHER_HOST, Some(&job)).await.expect_status(200);
        assert_eq!(
            server.open_stream_from(&key, OTHER_HOST).await.status().as_u16(),
            200,
            "its own host can reconnect"
        );
    }
}

#[tokio::test]
async fn twin_takes_no_job_from_a_connected_agent() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    register(&server, &key, OTHER_HOST, None).await.expect_problem(409, "token_in_use");
    assert_eq!(recorded_count(&server, &id, "worker.token_in_use").await, 1);
    report(&server, &key, &job, "training").await.expect_status(200);
    for _ in 0..4 {
        register(&server, &key, OTHER_HOST, None).await.expect_problem(409, "token_in_use");
        server.clock.advance(Millis::from_secs(20));
    }
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("running"), &json!(1)));
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job, "its stream is still open");
}

#[tokio::test]
async fn an_older_agent_whose_address_changes_keeps_its_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    report(&server, &key, &job, "training").await.expect_status(200);
    let response = register(&server, &key, OTHER_HOST, Some(&job)).await.expect_status(200);
    assert_eq!(response["resume_job"]["job_id"], job);
    assert_eq!(server.job_status(&job).await, "running");
}

#[tokio::test]
async fn disconnected_older_agent_does_not_block_others() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("old").await;
    for host in [AGENT_HOST, OTHER_HOST, AGENT_HOST, OTHER_HOST, AGENT_HOST, OTHER_HOST] {
        drop(connect(&server, &key, host).await);
        wait_until_disconnected(&server, &id).await;
    }
}

#[tokio::test]
async fn unassigned_run_of_an_older_agent_is_stopped() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, other_key, mut other_events) = server.connect_worker("other").await;
    let first = server.submit("digits").await;
    other_events.next_offer().await;
    server.report_status(&other_key, &first, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.clock.advance(Millis::from_secs(1));
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    // Its report is lost; the job goes to another worker.
    server.report_status(&other_key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.advance(Millis::from_secs(30)).await;
    assert_eq!(other_events.next_offer().await.attempt.0, 2);
    server.report_status(&other_key, &job, json!({"status": "running", "attempt": 2})).await.expect_status(200);
    for _ in 0..3 {
        heartbeat_busy(&server, &key, &job).await;
        let stop = events.next_of_type("job_cancel").await;
        assert_eq!((&stop["job_id"], &stop["reason"]), (&json!(job), &json!("superseded")), "until it stops");
    }
    assert_eq!(
        recorded_count(&server, &id, "worker.unassigned_run").await,
        1,
        "a known unassigned run is not recorded again"
    );
    assert_eq!(
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"],
        "busy"
    );
    let next = server.submit("digits").await;
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{next}/explain")).await.expect_status(200);
    let worker = explained["workers"].as_array().expect("a list").iter().find(|worker| worker["worker_id"] == id);
    let blocker = &worker.expect("each worker is listed")["blockers"][0];
    let text = format!("The agent runs {job}, which is not assigned to it; stop requested.");
    assert_eq!((&blocker["code"], &blocker["text"]), (&json!("unassigned_run"), &json!(text)));
    heartbeat_idle(&server, &key).await;
    assert_eq!(only_offer(&mut events).await, next, "nothing is cancelled after a newer offer");
    assert_eq!(server.job_status(&job).await, "running", "the assigned run continues");
}

/// Returns the job of the next offer; no cancel may precede it.
async fn only_offer(events: &mut EventStreamReader) -> Value {
    loop {
        let event = events.next().await.expect("the stream is open");
        assert_ne!(event["type"], "job_cancel", "{event}");
        if event["type"] == "job_submit" {
            return event["job_id"].clone();
        }
    }
}

#[tokio::test]
async fn rejected_report_is_answered_on_the_stream() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = cancelled_offer(&server, &mut events).await;
    report(&server, &key, &job, "starting").await.expect_problem(409, "job_ended");
    report(&server, &key, &job, "training").await.expect_problem(409, "job_ended");
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job);
    assert_eq!(recorded_count(&server, &id, "worker.unassigned_run").await, 1);
    let next = server.submit("digits").await;
    assert_eq!(server.job_status(&next).await, "queued");
    report(&server, &key, &job, "failed").await.expect_problem(409, "job_ended");
    assert_eq!(only_offer(&mut events).await, next);
    report(&server, &key, "j_none", "training").await.expect_problem(404, "job_not_found");
    assert_eq!(
        recorded_count(&server, &id, "worker.unassigned_run").await,
        3,
        "a report of an unknown job is recorded"
    );
    report(&server, &key, &next, "starting").await.expect_status(200);
    report(&server, &key, &next, "completed").await.expect_status(200);
    server.advance(Millis::from_secs(2)).await;
    let last = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, last);
}

#[tokio::test]
async fn concurrent_offer_expires_instead_of_being_cancelled() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_older_agent(&server).await;
    let job = cancelled_offer(&server, &mut events).await;
    let next = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, next);
    heartbeat_busy(&server, &key, &job).await;
    server.advance(Millis::from_secs(29)).await;
    assert_eq!(server.job_status(&next).await, "offered");
    server.advance(Millis::from_secs(1)).await;
    assert_eq!(server.job_status(&next).await, "queued", "an agent with an unassigned run gets no offers");
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job);
    heartbeat_idle(&server, &key).await;
    assert_eq!(only_offer(&mut events).await, next);
}

#[tokio::test]
async fn accepted_job_is_no_unassigned_run() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let old = cancelled_offer(&server, &mut events).await;
    let job = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, job);
    report(&server, &key, &job, "starting").await.expect_status(200);
    heartbeat_busy(&server, &key, &old).await;
    report(&server, &key, &old, "training").await.expect_problem(409, "job_ended");
    assert_eq!(recorded_count(&server, &id, "worker.unassigned_run").await, 0);
    report(&server, &key, &job, "completed").await.expect_status(200);
    server.advance(Millis::from_secs(2)).await;
    let next = server.submit("digits").await;
    assert_eq!(only_offer(&mut events).await, next);
}

#[tokio::test]
async fn heartbeat_accepts_an_offer_whose_reports_were_lost() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    heartbeat_busy(&server, &key, &job).await;
    server.advance(Millis::from_secs(40)).await;
    assert_eq!(server.job_status(&job).await, "starting");
    report(&server, &key, &job, "completed").await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["attempt"]), (&json!("completed"), &json!(1)));
    assert_eq!(recorded_count(&server, &id, "worker.unassigned_run").await, 0);
}

#[tokio::test]
async fn rejected_report_accepts_no_newer_offer() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.advance(Millis::from_secs(30)).await;
    assert_eq!(events.next_offer().await.attempt.0, 2);
    let old = json!({"status": "starting", "attempt": 1});
    post(&server, &key, &format!("/api/workers/job/{job}/status"), old).await.expect_problem(409, "stale_attempt");
    assert_eq!(server.job_status(&job).await, "offered");
}
