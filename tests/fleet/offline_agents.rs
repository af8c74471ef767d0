//! Agents that were declared offline but still run.

use nix::sys::signal::Signal;

use crate::harness::{SHORT_HEARTBEAT_TIMEOUT, TestFleet, trainers};

#[tokio::test]
async fn paused_agent_stops_its_reassigned_attempt() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    let (first, second) = (fleet.add_host("paused").await, fleet.add_host("heir").await);
    let first = first.with_python_trainer(trainers::AT_THE_GATE);
    let second = second.with_python_trainer(trainers::AT_THE_GATE);
    let paused = first.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    paused.signal(Signal::SIGSTOP);
    fleet.api.wait_for_worker(&first.worker, "offline").await;
    let _second_agent = second.start();
    crate::harness::wait_until("the second attempt to run", async || {
        let job = fleet.api.job(&job).await;
        (job["status"] == "running" && job["attempt"] == 2).then_some(())
    })
    .await;

    paused.signal(Signal::SIGCONT);
    first.wait_for_attempt_end(&job, 1).await;
    fleet.api.wait_for_worker(&first.worker, "idle").await;
    second.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&2.into(), &second.worker.clone().into()));
    assert_eq!(done["attempts"][0]["outcome"], "lost", "{done:#}");
    assert!(!first.trainer_log(&job, 1).contains("through the gate"), "the first attempt continued");
}

#[tokio::test]
async fn returning_agent_keeps_its_job_before_reassignment() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    let host = fleet.add_host("paused").await.with_python_trainer(trainers::AT_THE_GATE);
    let paused = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    paused.signal(Signal::SIGSTOP);
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    paused.signal(Signal::SIGCONT);
    fleet.api.wait_for_job(&job, "running").await;
    host.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

#[tokio::test]
async fn second_host_with_the_same_token_waits() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    let host = fleet.add_host("owner").await.with_python_trainer(trainers::AT_THE_GATE);
    let owner = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    let second_host = fleet.add_host("thief").await.with_token(&host.token).with_python_trainer(trainers::AT_THE_GATE);
    let second_agent = second_host.start();
    crate::harness::wait_until("the second host to be rejected", async || {
        second_agent.output().contains("uses this token and is alive").then_some(())
    })
    .await;
    assert_eq!(fleet.api.job(&job).await["status"], "running");
    owner.kill().await;
    crate::harness::wait_until("the second host to be accepted", async || {
        second_agent.output().contains("registered at").then_some(())
    })
    .await;
    crate::harness::wait_until("the job to continue on the second host", async || {
        (fleet.api.job(&job).await["attempt"] == 2).then_some(())
    })
    .await;
}
