//! `kill -9` of one side, in the middle of a job (invariants I5 and I6): nothing fails, nothing happens twice, and no
//! byte of the log is lost or doubled.

use serde_json::json;

use crate::harness::{Fleet, Host, trainers};

/// One attempt, one end, and the whole log once.
async fn assert_done_once(fleet: &Fleet, host: &Host, job: &str, log: &str) {
    let done = fleet.api.until_job(job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(done["attempts"][0]["outcome"], "completed", "{done:#}");
    assert_eq!(fleet.api.log(job).await, log);
    assert_eq!(fleet.api.get("/api/queue/stats").await["completed"], 1);
    assert!(!host.attempt(job, 2).exists(), "the host has begun a second attempt");
}

#[tokio::test]
async fn the_server_may_be_killed() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("survivor").await.training_with(trainers::COUNTING);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    for bytes in [4_000, 20_000] {
        fleet.api.until_log(&job, bytes).await;
        fleet.kill_server().await;
        fleet.start_server().await;
    }
    assert_done_once(&fleet, &host, &job, &trainers::counted()).await;
    assert!(agent.is_running());
}

#[tokio::test]
async fn a_job_may_end_while_the_server_is_away() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("patient").await.training_with(trainers::AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    fleet.kill_server().await;
    host.open_gate();
    host.until_over(&job, 1).await;
    fleet.start_server().await;
    assert_done_once(&fleet, &host, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn the_agent_may_be_killed() {
    let fleet = Fleet::start().await;
    let host = fleet.host("adopter").await.training_with(trainers::COUNTING);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    for bytes in [4_000, 20_000] {
        fleet.api.until_log(&job, bytes).await;
        agent.kill().await;
        agent = host.start();
    }
    assert_done_once(&fleet, &host, &job, &trainers::counted()).await;
    assert!(agent.is_running());
}

#[tokio::test]
async fn a_job_may_end_while_the_agent_is_away() {
    let fleet = Fleet::start().await;
    let host = fleet.host("latecomer").await.training_with(trainers::AT_THE_GATE);
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    agent.kill().await;
    host.open_gate();
    host.until_over(&job, 1).await;
    let _agent = host.start();
    assert_done_once(&fleet, &host, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn a_real_training_goes_on_through_both() {
    let mut fleet = Fleet::start().await;
    fleet.configure("unhurried", &json!({"example_step_delay_ms": 15})).await;
    let host = fleet.host("both").await;
    let agent = host.start();
    let job = fleet.api.submit("unhurried").await;
    fleet.api.until_log(&job, 100).await;
    agent.kill().await;
    fleet.kill_server().await;
    fleet.start_server().await;
    let _agent = host.start();
    fleet.api.until_job(&job, "completed").await;
    assert_done_once(&fleet, &host, &job, &host.trainer_log(&job, 1)).await;
    let series = fleet.api.get(&format!("/api/queue/{job}/progress")).await;
    assert_eq!(
        series["points"].as_array().and_then(|points| points.last()).map(|point| &point["step"]),
        Some(&json!(150))
    );
}
