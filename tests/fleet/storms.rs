//! Much at once, while things break.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::harness::{Fleet, Host, until};

/// A trainer that takes no time, and notes that it ran.
const NOTED: &str = r#"echo "$SIMPLETUNER_JOB_ID $SIMPLETUNER_ATTEMPT" >>"$HOME/journal""#;
const JOBS: usize = 200;

async fn quick_host(fleet: &Fleet, name: &str) -> Host {
    let host = fleet.host(name).await;
    let script = host.home().join("trainer.sh");
    std::fs::write(&script, NOTED).expect("a trainer");
    host.training_by(&format!("sh {}", script.display()))
}

#[tokio::test]
async fn two_hundred_jobs_outlive_kills_of_the_server_and_of_agents() {
    let mut fleet = Fleet::start().await;
    let hosts = [quick_host(&fleet, "one").await, quick_host(&fleet, "two").await, quick_host(&fleet, "three").await];
    let mut agents: Vec<_> = hosts.iter().map(Host::start).collect();
    let jobs = join_all((0..JOBS).map(|_| fleet.api.submit("digits-quick"))).await;
    let completed = async |fleet: &Fleet| fleet.api.get("/api/queue/stats").await["completed"].as_u64().unwrap_or(0);
    for (host, enough) in hosts.iter().zip([10, 60, 110]) {
        until("some jobs to be done", async || (completed(&fleet).await >= enough).then_some(())).await;
        fleet.kill_server().await;
        agents.remove(0).kill().await;
        fleet.start_server().await;
        agents.push(host.start());
    }
    until("all jobs to be done", async || (completed(&fleet).await == JOBS as u64).then_some(())).await;

    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for host in &hosts {
        for line in host.left("journal").unwrap_or_default().lines() {
            *ran.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    assert!(ran.values().all(|times| *times == 1), "a job ran twice: {ran:#?}");
    assert_eq!(jobs.iter().filter(|job| ran.contains_key(*job)).count(), JOBS, "a job did not run");
}
