//! Several servers on one PostgreSQL database behave as one.

use serde_json::json;

use crate::harness::database::NEXT_MIGRATION;
use crate::harness::environment::FakeTime;
use crate::harness::{NetworkProxy, SHORT_HEARTBEAT_TIMEOUT, TestFleet, trainers, wait_until};

#[tokio::test]
async fn running_job_moves_with_its_agent_to_the_remaining_server() {
    let mut fleet = TestFleet::start_shared().await;
    let (_second, other) = fleet.second_server().await;
    let proxy = NetworkProxy::new(fleet.port()).await;
    let host = fleet.add_host("gpu-1").await.with_url(&proxy.url()).with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let job = other.submit("digits-quick").await;
    other.wait_for_job(&job, "running").await;

    proxy.set_target(other.port());
    fleet.kill_server().await;
    other.wait_for_contact(&host.worker).await;
    host.open_gate();
    let done = other.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    let next = other.submit("digits-quick").await;
    other.wait_for_job(&next, "completed").await;

    fleet.start_server().await;
    assert_eq!(fleet.api.job(&next).await["status"], "completed");
}

#[tokio::test]
async fn rotation_on_one_server_applies_on_the_other() {
    let fleet = TestFleet::start_shared().await;
    let (_second, other) = fleet.second_server().await;
    let host = fleet.add_host("gpu-1").await;
    let mut agent = host.start();
    other.wait_for_worker(&host.worker, "idle").await;
    other.post(&format!("/api/admin/workers/{}/token", host.worker), &json!({})).await;
    assert_eq!(agent.wait().await, Some(77), "{}", agent.output());
}

#[tokio::test]
async fn leader_with_a_wrong_clock_uses_the_database_clock() {
    for seconds in [600, -600] {
        let mut fleet = TestFleet::start_shared_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
        let clock = FakeTime::new(fleet.path(), seconds);
        let (_second, other) = fleet.second_server_with(|command| clock.apply_to(command)).await;
        fleet.kill_server().await;
        wait_until("the second server to lead", async || {
            let metrics = String::from_utf8(other.get_bytes("/metrics").await).expect("text");
            metrics.contains("simpletuner_leader 1").then_some(())
        })
        .await;
        fleet.start_server().await;

        let host = fleet.add_host("gpu-1").await.with_python_trainer(trainers::AT_THE_GATE);
        let agent = host.start();
        let job = fleet.submit_running_job().await;
        // Connected to the first server while the second one checks for silent workers.
        for _ in 0..8 {
            fleet.api.wait_for_contact(&host.worker).await;
        }
        host.open_gate();
        let done = fleet.api.wait_for_job(&job, "completed").await;
        assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
        let offline_entries = fleet.api.get("/api/audit?action=worker.offline").await;
        assert_eq!(offline_entries["entries"], json!([]), "{offline_entries:#}");
        agent.kill().await;
        fleet.api.wait_for_worker(&host.worker, "offline").await;
    }
}

/// The next version's first server has migrated the database while this version's serves: both continue, in turns.
#[tokio::test]
async fn servers_continue_on_what_the_next_version_has_added_to() {
    let mut fleet = TestFleet::start_shared().await;
    let (second, other) = fleet.second_server().await;
    let host = fleet.add_host("gpu-1").await.with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    let before = fleet.submit_running_job().await;
    // Both have used their statements.
    other.wait_for_job(&before, "running").await;

    fleet.execute_sql(NEXT_MIGRATION).await;
    for api in [&fleet.api, &other] {
        let ready = api.get("/readyz").await;
        assert_eq!(ready["checks"]["migrations"]["status"], "warning", "{ready:#}");
    }
    host.open_gate();
    fleet.api.wait_for_job(&before, "completed").await;
    for api in [&fleet.api, &other] {
        let job = api.submit("digits-quick").await;
        fleet.api.wait_for_job(&job, "completed").await;
        other.wait_for_job(&job, "completed").await;
        assert_eq!(api.log(&job).await, trainers::AT_THE_GATE_OUTPUT);
    }

    fleet.kill_server().await;
    let submitted_meanwhile = other.submit("digits-quick").await;
    fleet.start_server().await;
    fleet.api.wait_for_job(&submitted_meanwhile, "completed").await;
    second.kill().await;
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "completed").await;
    let audit = fleet.api.get("/api/audit/verify").await;
    assert_eq!(audit["intact"], true, "{audit:#}");
}
