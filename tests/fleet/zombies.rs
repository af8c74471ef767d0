//! Who was taken for dead and is not.

use nix::sys::signal::Signal;

use crate::harness::{Fleet, SOON, trainers};

#[tokio::test]
async fn an_agent_that_was_paused_stops_what_was_given_away() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let (first, second) = (fleet.host("paused").await, fleet.host("heir").await);
    let first = first.training_with(trainers::AT_THE_GATE);
    let second = second.training_with(trainers::AT_THE_GATE);
    let paused = first.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    paused.signal(Signal::SIGSTOP);
    fleet.api.until_worker(&first.worker, "offline").await;
    let _heir = second.start();
    crate::harness::until("the second attempt to run", async || {
        let job = fleet.api.job(&job).await;
        (job["status"] == "running" && job["attempt"] == 2).then_some(())
    })
    .await;

    paused.signal(Signal::SIGCONT);
    first.until_over(&job, 1).await;
    fleet.api.until_worker(&first.worker, "idle").await;
    second.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&2.into(), &second.worker.clone().into()));
    assert_eq!(done["attempts"][0]["outcome"], "lost", "{done:#}");
    assert!(!first.trainer_log(&job, 1).contains("through the gate"), "the first attempt was let through");
}

#[tokio::test]
async fn an_agent_that_comes_back_before_its_job_is_given_away_keeps_it() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let host = fleet.host("paused").await.training_with(trainers::AT_THE_GATE);
    let paused = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    paused.signal(Signal::SIGSTOP);
    fleet.api.until_worker(&host.worker, "offline").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    paused.signal(Signal::SIGCONT);
    fleet.api.until_job(&job, "running").await;
    host.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

#[tokio::test]
async fn a_second_host_with_the_same_token_has_to_wait() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let host = fleet.host("owner").await.training_with(trainers::AT_THE_GATE);
    let owner = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    let thief = fleet.host("thief").await.holding(&host.token).training_with(trainers::AT_THE_GATE);
    let other = thief.start();
    crate::harness::until("the second host to be refused", async || {
        other.said().contains("uses this token and is alive").then_some(())
    })
    .await;
    assert_eq!(fleet.api.job(&job).await["status"], "running");
    owner.kill().await;
    crate::harness::until("the second host to be let in", async || {
        other.said().contains("registered at").then_some(())
    })
    .await;
    crate::harness::until("the job to go on there", async || (fleet.api.job(&job).await["attempt"] == 2).then_some(()))
        .await;
}
