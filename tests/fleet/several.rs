//! Several servers on one PostgreSQL work as one.

use serde_json::json;

use crate::harness::surroundings::Clock;
use crate::harness::{Fleet, SOON, Wire, trainers, until};

#[tokio::test]
async fn a_running_job_moves_with_its_agent_to_the_server_that_is_left() {
    let mut fleet = Fleet::start_shared().await;
    let (_second, other) = fleet.second_server().await;
    let wire = Wire::to(fleet.port()).await;
    let host = fleet.host("gpu-1").await.reaching(&wire.url()).training_with(trainers::AT_THE_GATE);
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    let job = other.submit("digits-quick").await;
    other.until_job(&job, "running").await;

    wire.turn_to(other.port());
    fleet.kill_server().await;
    other.until_heard_again(&host.worker).await;
    host.open_gate();
    let done = other.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    let next = other.submit("digits-quick").await;
    other.until_job(&next, "completed").await;

    fleet.start_server().await;
    assert_eq!(fleet.api.job(&next).await["status"], "completed");
}

#[tokio::test]
async fn a_rotation_on_one_server_is_felt_on_the_other() {
    let fleet = Fleet::start_shared().await;
    let (_second, other) = fleet.second_server().await;
    let host = fleet.host("gpu-1").await;
    let mut agent = host.start();
    other.until_worker(&host.worker, "idle").await;
    other.post(&format!("/api/admin/workers/{}/token", host.worker), &json!({})).await;
    assert_eq!(agent.ended().await, Some(77), "{}", agent.said());
}

#[tokio::test]
async fn a_leader_whose_machine_has_a_wrong_clock_judges_as_the_others_would() {
    for seconds in [600, -600] {
        let mut fleet = Fleet::start_shared_with(&[SOON]).await;
        let clock = Clock::wrong_by(fleet.path(), seconds);
        let (_second, other) = fleet.second_server_by(|command| clock.rule(command)).await;
        fleet.kill_server().await;
        until("the second server to lead", async || {
            let metrics = String::from_utf8(other.bytes("/metrics").await).expect("text");
            metrics.contains("simpletuner_leader 1").then_some(())
        })
        .await;
        fleet.start_server().await;

        let host = fleet.host("gpu-1").await.training_with(trainers::AT_THE_GATE);
        let agent = host.start();
        let job = fleet.running().await;
        // Heard by the first, meanwhile judged by the second.
        for _ in 0..8 {
            fleet.api.until_heard_again(&host.worker).await;
        }
        host.open_gate();
        let done = fleet.api.until_job(&job, "completed").await;
        assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
        let given_up = fleet.api.get("/api/audit?action=worker.offline").await;
        assert_eq!(given_up["entries"], json!([]), "{given_up:#}");
        agent.kill().await;
        fleet.api.until_worker(&host.worker, "offline").await;
    }
}
