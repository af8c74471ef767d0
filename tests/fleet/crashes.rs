//! `kill -9` of one side during a job (invariants I5 and I6): nothing fails, nothing happens twice, and no byte of the
//! log is lost or duplicated.

use serde_json::json;

use crate::harness::{TestFleet, WorkerHost, trainers};

/// Checks for one attempt, one end, and a complete log without duplicates.
async fn assert_done_once(fleet: &TestFleet, host: &WorkerHost, job: &str, log: &str) {
    let done = fleet.api.wait_for_job(job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(done["attempts"][0]["outcome"], "completed", "{done:#}");
    assert_eq!(fleet.api.log(job).await, log);
    assert_eq!(fleet.api.get("/api/queue/stats").await["completed"], 1);
    assert!(!host.attempt_dir(job, 2).exists(), "the host has begun a second attempt");
}

#[tokio::test]
async fn job_survives_a_killed_server() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("survivor").await.with_python_trainer(trainers::COUNTING);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    for bytes in [4_000, 20_000] {
        fleet.api.wait_for_log(&job, bytes).await;
        fleet.kill_server().await;
        fleet.start_server().await;
    }
    assert_done_once(&fleet, &host, &job, &trainers::counting_output()).await;
    assert!(agent.is_running());
}

#[tokio::test]
async fn job_can_end_while_the_server_is_down() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("patient").await.with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    fleet.kill_server().await;
    host.open_gate();
    host.wait_for_attempt_end(&job, 1).await;
    fleet.start_server().await;
    assert_done_once(&fleet, &host, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn job_survives_a_killed_agent() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("adopter").await.with_python_trainer(trainers::COUNTING);
    let mut agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    for bytes in [4_000, 20_000] {
        fleet.api.wait_for_log(&job, bytes).await;
        agent.kill().await;
        agent = host.start();
    }
    assert_done_once(&fleet, &host, &job, &trainers::counting_output()).await;
    assert!(agent.is_running());
}

#[tokio::test]
async fn job_can_end_while_the_agent_is_down() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("latecomer").await.with_python_trainer(trainers::AT_THE_GATE);
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    agent.kill().await;
    host.open_gate();
    host.wait_for_attempt_end(&job, 1).await;
    let _agent = host.start();
    assert_done_once(&fleet, &host, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn real_training_survives_both() {
    let mut fleet = TestFleet::start().await;
    fleet.put_config("unhurried", &json!({"example_step_delay_ms": 15})).await;
    let host = fleet.add_host("both").await;
    let agent = host.start();
    let job = fleet.api.submit("unhurried").await;
    fleet.api.wait_for_log(&job, 100).await;
    agent.kill().await;
    fleet.kill_server().await;
    fleet.start_server().await;
    let _agent = host.start();
    fleet.api.wait_for_job(&job, "completed").await;
    assert_done_once(&fleet, &host, &job, &host.trainer_log(&job, 1)).await;
    let series = fleet.api.get(&format!("/api/queue/{job}/progress")).await;
    assert_eq!(
        series["points"].as_array().and_then(|points| points.last()).map(|point| &point["step"]),
        Some(&json!(150))
    );
}
