//! Cancelling is immediate, whatever the trainer does, and leaves no process on the host (invariant I11).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{TestFleet, WorkerHost, processes_that_mention, trainers};

/// Cancels a running job; returns how long that took.
async fn cancel(fleet: &TestFleet, job: &str) -> Duration {
    let started = Instant::now();
    fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    fleet.api.wait_for_job(job, "cancelled").await;
    started.elapsed()
}

/// Fails if a process of the job still runs.
fn assert_no_processes(host: &WorkerHost, job: &str) {
    let remaining = processes_that_mention(&host.attempt_dir(job, 1).to_string_lossy());
    assert!(remaining.is_empty(), "still running after the job's end: {remaining:?}");
}

#[tokio::test]
async fn silent_job_is_cancelled_immediately() {
    const SILENCE: u64 = 50;
    let fleet = TestFleet::start().await;
    fleet.put_config("silent", &json!({"example_silent_seconds": SILENCE})).await;
    let host = fleet.add_host("listener").await;
    let _agent = host.start();
    let job = fleet.api.submit("silent").await;
    fleet.api.wait_for_job(&job, "running").await;

    let duration = cancel(&fleet, &job).await;
    assert!(duration < Duration::from_secs(SILENCE / 2), "the cancel waited for output of the trainer: {duration:?}");
    assert_no_processes(&host, &job);

    let next = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&next, "completed").await;
    assert_eq!(fleet.api.job(&job).await["status"], "cancelled");
}

#[tokio::test]
async fn children_that_ignore_signals_are_killed() {
    let fleet = TestFleet::start().await;
    let host =
        fleet.add_host("firm").await.with_python_trainer(trainers::IGNORES_SIGTERM).with_flags(&["--stop-grace", "1"]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_log(&job, "child\n".len() as u64).await;
    cancel(&fleet, &job).await;
    assert_no_processes(&host, &job);
}

#[tokio::test]
async fn cancel_reaches_an_agent_after_its_reconnect() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("deaf").await.with_python_trainer(trainers::AT_THE_GATE);
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    agent.kill().await;
    let cancelling = fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelling["status"], "cancelling");
    let _agent = host.start();
    fleet.api.wait_for_job(&job, "cancelled").await;
    assert_no_processes(&host, &job);
}

#[tokio::test]
async fn queued_job_is_cancelled_immediately() {
    let fleet = TestFleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    let cancelled = fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelled["status"], "cancelled");
    let host = fleet.add_host("too-late").await;
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    assert_eq!(fleet.api.job(&job).await["attempt"], 0);
}
