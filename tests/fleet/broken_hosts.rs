//! Hosts with a broken environment: network, name resolution, clock.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::environment::{FakeTime, HostsFile, VirtualCable, can_make_namespaces};
use crate::harness::{SHORT_HEARTBEAT_TIMEOUT, TestFleet, WorkerHost, trainers, wait_until};

async fn assert_done_once(fleet: &TestFleet, host: &WorkerHost, job: &str) {
    host.open_gate();
    let done = fleet.api.wait_for_job(job, "completed").await;
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(fleet.api.log(job).await, trainers::AT_THE_GATE_OUTPUT);
}

#[tokio::test]
async fn silent_packet_loss_loses_no_attempt() {
    if !can_make_namespaces() {
        return;
    }
    let cable = VirtualCable::new().await;
    let address = cable.server_address().to_string();
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT, ("SIMPLETUNER_HOST", &address)]).await;
    let host = fleet.add_host("distant").await.with_python_trainer(trainers::AT_THE_GATE);
    let agent = host.start_with_changes(|command| Some(cable.agent_command(command)));
    let job = fleet.submit_running_job().await;

    cable.drop_from_agent().await;
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    cable.restore().await;
    fleet.api.wait_for_job(&job, "running").await;

    cable.drop_all().await;
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    cable.restore().await;
    fleet.api.wait_for_job(&job, "running").await;
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn unknown_host_name_is_reported_and_retried() {
    if !can_make_namespaces() {
        return;
    }
    let fleet = TestFleet::start().await;
    let url = format!("http://orchestrator.test:{}", fleet.port());
    let host = fleet.add_host("nameless").await.with_url(&url).with_python_trainer(trainers::AT_THE_GATE);
    let names = HostsFile::new(fleet.path());
    let agent = host.start_with_changes(|command| Some(names.apply_to(command)));
    wait_until("the failed name resolution to be reported", async || {
        let output = agent.output();
        (output.contains("orchestrator.test") && output.contains("name")).then_some(())
    })
    .await;
    names.add("orchestrator.test");
    let job = fleet.submit_running_job().await;
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn wrong_clock_of_an_agent_has_no_effect() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    // Trainers inherit the library of the clock; without this it shares memory by the process's ID, which in a sandbox is 1.
    let shared = ["--pass-env", "FAKETIME_SHARED"];
    let host = fleet.add_host("timeless").await.with_python_trainer(trainers::AT_THE_GATE).with_flags(&shared);
    let clock = FakeTime::new(fleet.path(), 600);
    let agent = host.start_with_changes(|command| {
        clock.apply_to(command);
        None
    });
    let job = fleet.submit_running_job().await;
    for seconds in [-600, 86_400, 0] {
        clock.set_offset(seconds);
        fleet.api.wait_for_contact(&host.worker).await;
        let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
        assert_eq!(worker["status"], "busy", "{worker:#}");
    }
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn clock_change_on_the_server_marks_no_worker_offline() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let clock = Arc::new(FakeTime::new(directory.path(), 0));
    let server_clock = Arc::clone(&clock);
    let fleet =
        TestFleet::start_with_change(&[SHORT_HEARTBEAT_TIMEOUT], move |command| server_clock.apply_to(command)).await;
    let host = fleet.add_host("judged").await.with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.submit_running_job().await;
    for seconds in [600, -600, 0] {
        clock.set_offset(seconds);
        // Meanwhile the server checks for silent workers.
        for _ in 0..4 {
            fleet.api.wait_for_contact(&host.worker).await;
        }
        let running: Value = fleet.api.job(&job).await;
        assert_eq!((&running["status"], &running["attempt"]), (&json!("running"), &json!(1)), "{running:#}");
    }
    assert_done_once(&fleet, &host, &job).await;
}
