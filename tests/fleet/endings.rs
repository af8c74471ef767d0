//! How an agent ends by itself, and how `simpletuner worker` becomes one.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Fleet, Program, command, trainers, until};

/// The exit code for "do not restart".
const REFUSED: Option<i32> = Some(77);

async fn assert_refused(agent: &mut Program) {
    assert_eq!(agent.ended().await, REFUSED, "{}", agent.said());
    let said = agent.said();
    assert!(said.contains("Invalid token") && !said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn an_ephemeral_agent_ends_after_one_job() {
    let fleet = Fleet::start().await;
    let host = fleet.host_of("one-job", "ephemeral").await;
    let mut agent = host.start();
    let first = fleet.api.submit("digits-quick").await;
    let second = fleet.api.submit("digits-quick").await;
    assert_eq!(agent.ended().await, Some(0), "{}", agent.said());
    assert_eq!(fleet.api.job(&first).await["status"], "completed");
    assert_eq!(fleet.api.job(&second).await["attempt"], 0, "a worker that leaves took another job");
    fleet.api.until_worker(&host.worker, "offline").await;
}

#[tokio::test]
async fn a_wrong_token_ends_the_agent() {
    let fleet = Fleet::start().await;
    let host = fleet.host("impostor").await.holding("wt_not-a-token-of-anybody");
    assert_refused(&mut host.start()).await;
}

#[tokio::test]
async fn a_rotated_token_ends_the_agent() {
    let fleet = Fleet::start().await;
    let host = fleet.host("rotated").await;
    let mut agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    let rotated = fleet.api.post(&format!("/api/admin/workers/{}/token", host.worker), &json!({})).await;
    assert_refused(&mut agent).await;

    let host = host.holding(rotated["token"].as_str().expect("a token"));
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn a_deleted_workers_agent_ends() {
    let fleet = Fleet::start().await;
    let host = fleet.host("deleted").await;
    let path = format!("/api/admin/workers/{}", host.worker);
    let mut agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    let (status, refusal) = fleet.api.ask(Method::DELETE, &path, None).await;
    assert_eq!(status, 409, "a connected worker can be deleted: {refusal}");

    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().await, Some(143), "{}", agent.said());
    fleet.api.until_worker(&host.worker, "offline").await;
    let (status, answer) = fleet.api.ask(Method::DELETE, &path, None).await;
    assert_eq!(status, 200, "{answer}");
    assert_refused(&mut host.start()).await;
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let mut fleet = Fleet::start().await;
    let (stays, gives_up) = (fleet.host("stays").await, fleet.host_of("gives-up", "ephemeral").await);
    let gives_up = gives_up.flags(&["--give-up-after", "2"]);
    fleet.kill_server().await;

    let mut ephemeral = gives_up.start();
    let mut persistent = stays.start();
    assert_eq!(ephemeral.ended().await, Some(69), "{}", ephemeral.said());
    until("the other agent's sentence", async || {
        let said = persistent.said();
        said.contains("cannot reach the orchestrator at http://127.0.0.1").then_some(())
    })
    .await;
    assert!(persistent.is_running());

    fleet.start_server().await;
    fleet.api.until_worker(&stays.worker, "idle").await;
}

#[tokio::test]
async fn simpletuner_worker_becomes_the_agent() {
    let fleet = Fleet::start().await;
    let host = fleet.host("documented").await;
    let mut worker = command("simpletuner", host.home());
    worker.args(["worker", "--orchestrator-url", fleet.api.url(), "--worker-token", &host.token]);
    worker.args(["--name", "documented", "--persistent", "-v"]);
    let agent = host.start_by(worker);
    fleet.api.until_worker(&host.worker, "idle").await;

    let program = std::fs::read_link(format!("/proc/{}/exe", agent.pid())).expect("a running program");
    assert!(program.ends_with("simpletuner-worker"), "{}", program.display());
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", agent.pid())).expect("a running program");
    assert!(!arguments.contains(&host.token), "the token stands in the process list: {arguments:?}");

    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "completed").await;
}

#[tokio::test]
async fn a_persistent_agent_that_is_told_to_end_leaves_its_job_running() {
    let fleet = Fleet::start().await;
    let host = fleet.host("upgraded").await.training_with(trainers::AT_THE_GATE);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().await, Some(143), "{}", agent.said());
    assert_eq!(fleet.api.job(&job).await["status"], "running");

    let _agent = host.start();
    host.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

#[tokio::test]
async fn an_ephemeral_agent_that_is_told_to_end_gives_its_job_back() {
    let fleet = Fleet::start().await;
    let spot = fleet.host_of("spot", "ephemeral").await.training_with(trainers::AT_THE_GATE);
    let mut agent = spot.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().await, Some(143), "{}", agent.said());
    let waiting = fleet.api.job(&job).await;
    assert_eq!(waiting["status"], "queued", "{waiting:#}");

    let other = fleet.host("other").await;
    let _agent = other.start();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_name"]), (&2.into(), &"other".into()), "{done:#}");
}
