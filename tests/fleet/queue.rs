//! Order and assignment of jobs.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::Value;

use crate::harness::{TestFleet, WorkerHost, trainers, wait_until};

#[tokio::test]
async fn queued_job_gets_a_new_worker() {
    let fleet = TestFleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    let host = fleet.add_host("newcomer").await;
    let _agent = host.start();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&1.into(), &host.worker.clone().into()));
}

#[tokio::test]
async fn jobs_submitted_at_once_run_one_after_the_other() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("only").await.with_python_trainer(trainers::JOURNAL);
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let jobs = join_all((0..6).map(|_| fleet.api.submit("digits-quick"))).await;
    wait_until("all six jobs", async || {
        let counts = fleet.api.get("/api/queue/stats").await;
        assert!(counts["running"].as_u64() <= Some(1), "one worker runs several jobs: {counts}");
        (counts["completed"] == 6).then_some(())
    })
    .await;

    let journal = host.trainer_file("journal").expect("a journal");
    let (begins, ends): (Vec<&str>, Vec<&str>) = journal.lines().partition(|line| line.starts_with("begin "));
    assert_eq!((begins.len(), ends.len()), (6, 6), "{journal}");
    let alternating = journal.lines().step_by(2).all(|line| line.starts_with("begin "));
    assert!(alternating, "two trainers ran at once:\n{journal}");
    let run_jobs: BTreeSet<&str> = begins.iter().filter_map(|line| line.strip_prefix("begin ")).collect();
    assert_eq!(run_jobs, jobs.iter().map(String::as_str).collect());
}

#[tokio::test]
async fn two_workers_share_the_load() {
    let fleet = TestFleet::start().await;
    let hosts = [fleet.add_host("left").await, fleet.add_host("right").await];
    let hosts = hosts.map(|host| host.with_python_trainer(trainers::AT_THE_GATE));
    let _agents = hosts.each_ref().map(WorkerHost::start);
    let jobs = [fleet.api.submit("digits-quick").await, fleet.api.submit("digits-quick").await];
    let mut workers = BTreeSet::new();
    for job in &jobs {
        let running: Value = fleet.api.wait_for_job(job, "running").await;
        workers.insert(running["worker_id"].as_str().expect("a worker").to_owned());
    }
    assert_eq!(workers, hosts.iter().map(|host| host.worker.clone()).collect());
    hosts.iter().for_each(WorkerHost::open_gate);
    for job in &jobs {
        fleet.api.wait_for_job(job, "completed").await;
    }
}
