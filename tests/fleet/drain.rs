//! A drain is undone by a person and by nothing else (invariant I7).

use serde_json::json;

use crate::harness::{Fleet, Host, trainers};

/// Every one of these looks at the whole queue, so that a job which is not offered by then is not offered.
async fn assert_still_drained(fleet: &Fleet, host: &Host, waiting: &str) {
    let worker = fleet.api.until_worker(&host.worker, "draining").await;
    assert_eq!(worker["draining"], true, "{worker:#}");
    let job = fleet.api.job(waiting).await;
    assert!(job["status"] == "queued" && job["attempt"] == 0, "a draining worker was offered a job: {job:#}");
}

#[tokio::test]
async fn a_drain_outlasts_everything_but_a_resume() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("leaver").await.training_with(trainers::AT_THE_GATE);
    let agent = host.start();
    let running = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&running, "running").await;
    fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({"reason": "new disks"})).await;
    let waiting = fleet.api.submit("digits-quick").await;
    assert_still_drained(&fleet, &host, &waiting).await;

    agent.kill().await;
    let _agent = host.start();
    fleet.api.until_heard_again(&host.worker).await;
    assert_still_drained(&fleet, &host, &waiting).await;

    fleet.kill_server().await;
    fleet.start_server().await;
    fleet.api.until_heard_again(&host.worker).await;
    assert_still_drained(&fleet, &host, &waiting).await;

    host.open_gate();
    fleet.api.until_job(&running, "completed").await;
    assert_still_drained(&fleet, &host, &waiting).await;

    fleet.api.post(&format!("/api/admin/workers/{}/resume", host.worker), &json!({})).await;
    let done = fleet.api.until_job(&waiting, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    fleet.api.until_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn an_ephemeral_worker_that_is_drained_leaves() {
    let fleet = Fleet::start().await;
    let host = fleet.host_of("brief", "ephemeral").await;
    let mut agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({})).await;
    assert_eq!(agent.ended().await, Some(0), "{}", agent.said());
    fleet.api.until_worker(&host.worker, "offline").await;
}
