//! Only a user can end a drain (invariant I7).

use serde_json::json;

use crate::harness::{TestFleet, WorkerHost, trainers};

/// Each of these triggers planning for the whole queue; a job that is not offered by then is not offered at all.
async fn assert_still_drained(fleet: &TestFleet, host: &WorkerHost, waiting: &str) {
    let worker = fleet.api.wait_for_worker(&host.worker, "draining").await;
    assert_eq!(worker["draining"], true, "{worker:#}");
    let job = fleet.api.job(waiting).await;
    assert!(job["status"] == "queued" && job["attempt"] == 0, "a draining worker was offered a job: {job:#}");
}

#[tokio::test]
async fn only_resume_ends_a_drain() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("leaver").await.with_python_trainer(trainers::AT_THE_GATE);
    let agent = host.start();
    let running = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&running, "running").await;
    fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({"reason": "new disks"})).await;
    let waiting = fleet.api.submit("digits-quick").await;
    assert_still_drained(&fleet, &host, &waiting).await;

    agent.kill().await;
    let _agent = host.start();
    fleet.api.wait_for_contact(&host.worker).await;
    assert_still_drained(&fleet, &host, &waiting).await;

    fleet.kill_server().await;
    fleet.start_server().await;
    fleet.api.wait_for_contact(&host.worker).await;
    assert_still_drained(&fleet, &host, &waiting).await;

    host.open_gate();
    fleet.api.wait_for_job(&running, "completed").await;
    assert_still_drained(&fleet, &host, &waiting).await;

    fleet.api.post(&format!("/api/admin/workers/{}/resume", host.worker), &json!({})).await;
    let done = fleet.api.wait_for_job(&waiting, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn drained_ephemeral_worker_exits() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host_of_type("brief", "ephemeral").await;
    let mut agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({})).await;
    assert_eq!(agent.wait().await, Some(0), "{}", agent.output());
    fleet.api.wait_for_worker(&host.worker, "offline").await;
}
