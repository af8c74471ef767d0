//! How an agent exits, and how `simpletuner worker` starts one.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Program, TestFleet, command, trainers, wait_until};

/// The exit code for "do not restart".
const REJECTED: Option<i32> = Some(77);

async fn assert_rejected(agent: &mut Program) {
    assert_eq!(agent.wait().await, REJECTED, "{}", agent.output());
    let output = agent.output();
    assert!(output.contains("Invalid token") && !output.contains("panicked"), "{output}");
}

#[tokio::test]
async fn ephemeral_agent_exits_after_one_job() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host_of_type("one-job", "ephemeral").await;
    let mut agent = host.start();
    let first = fleet.api.submit("digits-quick").await;
    let second = fleet.api.submit("digits-quick").await;
    assert_eq!(agent.wait().await, Some(0), "{}", agent.output());
    assert_eq!(fleet.api.job(&first).await["status"], "completed");
    assert_eq!(fleet.api.job(&second).await["attempt"], 0, "an exiting worker took another job");
    fleet.api.wait_for_worker(&host.worker, "offline").await;

    let mut second_run = host.start();
    assert_rejected(&mut second_run).await;
    let output = second_run.output();
    assert_eq!(output.matches("This ephemeral worker has run its job").count(), 1, "{output}");
    assert_eq!(output.matches("Invalid token").count(), 1, "{output}");
    assert!(!output.contains("Get a new token") && !output.contains("rotated"), "advice that does not help: {output}");
}

#[tokio::test]
async fn wrong_token_stops_the_agent() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("impostor").await.with_token("wt_not-a-token-of-anybody");
    assert_rejected(&mut host.start()).await;
}

#[tokio::test]
async fn rotated_token_stops_the_agent() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("rotated").await;
    let mut agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let rotated = fleet.api.post(&format!("/api/admin/workers/{}/token", host.worker), &json!({})).await;
    assert_rejected(&mut agent).await;

    let host = host.with_token(rotated["token"].as_str().expect("a token"));
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn agent_of_a_deleted_worker_exits() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("deleted").await;
    let path = format!("/api/admin/workers/{}", host.worker);
    let mut agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let (status, rejection) = fleet.api.request(Method::DELETE, &path, None).await;
    assert_eq!(status, 409, "a connected worker can be deleted: {rejection}");

    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait().await, Some(143), "{}", agent.output());
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    let (status, body) = fleet.api.request(Method::DELETE, &path, None).await;
    assert_eq!(status, 200, "{body}");
    assert_rejected(&mut host.start()).await;
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let mut fleet = TestFleet::start().await;
    let (stays, gives_up) = (fleet.add_host("stays").await, fleet.add_host_of_type("gives-up", "ephemeral").await);
    let gives_up = gives_up.with_flags(&["--give-up-after", "2"]);
    fleet.kill_server().await;

    let mut ephemeral = gives_up.start();
    let mut persistent = stays.start();
    assert_eq!(ephemeral.wait().await, Some(69), "{}", ephemeral.output());
    wait_until("the other agent's error", async || {
        let output = persistent.output();
        output.contains("cannot reach the orchestrator at http://127.0.0.1").then_some(())
    })
    .await;
    assert!(persistent.is_running());

    fleet.start_server().await;
    fleet.api.wait_for_worker(&stays.worker, "idle").await;
}

#[tokio::test]
async fn simpletuner_worker_becomes_the_agent() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("documented").await;
    let mut worker = command("simpletuner", host.home());
    worker.args(["worker", "--orchestrator-url", fleet.api.url(), "--worker-token", &host.token]);
    worker.args(["--name", "documented", "--persistent", "-v"]);
    let agent = host.start_command(worker);
    fleet.api.wait_for_worker(&host.worker, "idle").await;

    let program = std::fs::read_link(format!("/proc/{}/exe", agent.pid())).expect("a running program");
    assert!(program.ends_with("simpletuner-worker"), "{}", program.display());
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", agent.pid())).expect("a running program");
    assert!(!arguments.contains(&host.token), "the token is in the process list: {arguments:?}");

    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "completed").await;
}

#[tokio::test]
async fn stopped_persistent_agent_leaves_its_job_running() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("upgraded").await.with_python_trainer(trainers::AT_THE_GATE);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait().await, Some(143), "{}", agent.output());
    assert_eq!(fleet.api.job(&job).await["status"], "running");

    let _agent = host.start();
    host.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

#[tokio::test]
async fn stopped_ephemeral_agent_returns_its_job() {
    let fleet = TestFleet::start().await;
    let spot = fleet.add_host_of_type("spot", "ephemeral").await.with_python_trainer(trainers::AT_THE_GATE);
    let mut agent = spot.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait().await, Some(143), "{}", agent.output());
    let waiting = fleet.api.job(&job).await;
    assert_eq!(waiting["status"], "queued", "{waiting:#}");

    let other = fleet.add_host("other").await;
    let _agent = other.start();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_name"]), (&2.into(), &"other".into()), "{done:#}");
}
