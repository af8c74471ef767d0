//! Cancelling: at once, whatever the trainer does, and with nothing left alive on the host (invariant I11).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Fleet, Host, processes_that_mention, trainers};

/// Cancels a running job; answers with how long that took.
async fn cancel(fleet: &Fleet, job: &str) -> Duration {
    let began = Instant::now();
    fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    fleet.api.until_job(job, "cancelled").await;
    began.elapsed()
}

/// Its supervisor may still be on its way out; it is no process of the job's.
fn assert_nothing_lives(host: &Host, job: &str) {
    let mut left = processes_that_mention(&host.attempt(job, 1).to_string_lossy());
    left.retain(|(_, command)| !command.contains(" supervise "));
    assert!(left.is_empty(), "still alive after the job's end: {left:?}");
}

#[tokio::test]
async fn a_silent_job_is_cancelled_long_before_it_speaks() {
    const SILENCE: u64 = 50;
    let fleet = Fleet::start().await;
    fleet.configure("silent", &json!({"example_silent_seconds": SILENCE})).await;
    let host = fleet.host("listener").await;
    let _agent = host.start();
    let job = fleet.api.submit("silent").await;
    fleet.api.until_job(&job, "running").await;

    let took = cancel(&fleet, &job).await;
    assert!(took < Duration::from_secs(SILENCE / 2), "the cancel waited for the trainer to speak: {took:?}");
    assert_nothing_lives(&host, &job);

    let next = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&next, "completed").await;
    assert_eq!(fleet.api.job(&job).await["status"], "cancelled");
}

#[tokio::test]
async fn children_that_ignore_signals_die_too() {
    let fleet = Fleet::start().await;
    let host = fleet.host("firm").await.training_with(trainers::STUBBORN_FAMILY).flags(&["--stop-grace", "1"]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_log(&job, "child\n".len() as u64).await;
    cancel(&fleet, &job).await;
    assert_nothing_lives(&host, &job);
}

#[tokio::test]
async fn a_cancel_reaches_an_agent_that_was_away() {
    let fleet = Fleet::start().await;
    let host = fleet.host("deaf").await.training_with(trainers::AT_THE_GATE);
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    agent.kill().await;
    let cancelling = fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelling["status"], "cancelling");
    let _agent = host.start();
    fleet.api.until_job(&job, "cancelled").await;
    assert_nothing_lives(&host, &job);
}

#[tokio::test]
async fn a_job_that_waits_is_cancelled_at_once() {
    let fleet = Fleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    let cancelled = fleet.api.post(&format!("/api/queue/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelled["status"], "cancelled");
    let host = fleet.host("too-late").await;
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    assert_eq!(fleet.api.job(&job).await["attempt"], 0);
}
