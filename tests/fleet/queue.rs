//! Who gets which job, and when.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::Value;

use crate::harness::{Fleet, Host, trainers, until};

#[tokio::test]
async fn a_job_that_was_there_first_gets_the_worker_that_comes() {
    let fleet = Fleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    let host = fleet.host("newcomer").await;
    let _agent = host.start();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&1.into(), &host.worker.clone().into()));
}

#[tokio::test]
async fn jobs_submitted_at_once_run_one_after_the_other() {
    let fleet = Fleet::start().await;
    let host = fleet.host("only").await.training_with(trainers::JOURNAL);
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    let jobs = join_all((0..6).map(|_| fleet.api.submit("digits-quick"))).await;
    until("all six jobs", async || {
        let counts = fleet.api.get("/api/queue/stats").await;
        assert!(counts["running"].as_u64() <= Some(1), "one worker runs several jobs: {counts}");
        (counts["completed"] == 6).then_some(())
    })
    .await;

    let journal = host.left("journal").expect("a journal");
    let (begins, ends): (Vec<&str>, Vec<&str>) = journal.lines().partition(|line| line.starts_with("begin "));
    assert_eq!((begins.len(), ends.len()), (6, 6), "{journal}");
    let alternating = journal.lines().step_by(2).all(|line| line.starts_with("begin "));
    assert!(alternating, "two trainers ran at once:\n{journal}");
    let ran: BTreeSet<&str> = begins.iter().filter_map(|line| line.strip_prefix("begin ")).collect();
    assert_eq!(ran, jobs.iter().map(String::as_str).collect());
}

#[tokio::test]
async fn two_workers_share_the_load() {
    let fleet = Fleet::start().await;
    let hosts = [fleet.host("left").await, fleet.host("right").await];
    let hosts = hosts.map(|host| host.training_with(trainers::AT_THE_GATE));
    let _agents = hosts.each_ref().map(Host::start);
    let jobs = [fleet.api.submit("digits-quick").await, fleet.api.submit("digits-quick").await];
    let mut workers = BTreeSet::new();
    for job in &jobs {
        let running: Value = fleet.api.until_job(job, "running").await;
        workers.insert(running["worker_id"].as_str().expect("a worker").to_owned());
    }
    assert_eq!(workers, hosts.iter().map(|host| host.worker.clone()).collect());
    hosts.iter().for_each(Host::open_gate);
    for job in &jobs {
        fleet.api.until_job(job, "completed").await;
    }
}
