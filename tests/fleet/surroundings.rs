//! Hosts on which something around the agent is wrong: its cable, its names, its clock.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::surroundings::{Cable, Clock, Names, are_ours};
use crate::harness::{Fleet, Host, SOON, trainers, until};

async fn assert_done_once(fleet: &Fleet, host: &Host, job: &str) {
    host.open_gate();
    let done = fleet.api.until_job(job, "completed").await;
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(fleet.api.log(job).await, trainers::THROUGH);
}

#[tokio::test]
async fn packets_that_are_lost_without_a_word_lose_no_attempt() {
    if !are_ours() {
        return;
    }
    let cable = Cable::new().await;
    let address = cable.server().to_string();
    let fleet = Fleet::start_with(&[SOON, ("SIMPLETUNER_HOST", &address)]).await;
    let host = fleet.host("distant").await.training_with(trainers::AT_THE_GATE);
    let agent = host.start_as(|command| Some(cable.at_the_far_end(command)));
    let job = fleet.running().await;

    cable.lose_what_the_agent_sends().await;
    fleet.api.until_worker(&host.worker, "offline").await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
    cable.plug_in().await;
    fleet.api.until_job(&job, "running").await;

    cable.pull_out().await;
    fleet.api.until_worker(&host.worker, "offline").await;
    cable.plug_in().await;
    fleet.api.until_job(&job, "running").await;
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn a_name_that_is_not_known_is_named_and_asked_for_again() {
    if !are_ours() {
        return;
    }
    let fleet = Fleet::start().await;
    let url = format!("http://orchestrator.test:{}", fleet.port());
    let host = fleet.host("nameless").await.reaching(&url).training_with(trainers::AT_THE_GATE);
    let names = Names::new(fleet.path());
    let agent = host.start_as(|command| Some(names.for_(command)));
    until("the name to be missed", async || {
        let said = agent.said();
        (said.contains("orchestrator.test") && said.contains("name")).then_some(())
    })
    .await;
    names.know("orchestrator.test");
    let job = fleet.running().await;
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn a_wrong_clock_of_an_agent_changes_nothing() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let host = fleet.host("timeless").await.training_with(trainers::AT_THE_GATE);
    let clock = Clock::wrong_by(fleet.path(), 600);
    let agent = host.start_as(|command| {
        clock.rule(command);
        None
    });
    let job = fleet.running().await;
    for seconds in [-600, 86_400, 0] {
        clock.step_to(seconds);
        fleet.api.until_heard_again(&host.worker).await;
        let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
        assert_eq!(worker["status"], "busy", "{worker:#}");
    }
    assert_done_once(&fleet, &host, &job).await;
    drop(agent);
}

#[tokio::test]
async fn a_servers_clock_that_is_set_judges_nobody() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let clock = Arc::new(Clock::wrong_by(directory.path(), 0));
    let servers = Arc::clone(&clock);
    let fleet = Fleet::start_by(&[SOON], move |command| servers.rule(command)).await;
    let host = fleet.host("judged").await.training_with(trainers::AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.running().await;
    for seconds in [600, -600, 0] {
        clock.step_to(seconds);
        // Meanwhile it is looked who is silent.
        for _ in 0..4 {
            fleet.api.until_heard_again(&host.worker).await;
        }
        let running: Value = fleet.api.job(&job).await;
        assert_eq!((&running["status"], &running["attempt"]), (&json!("running"), &json!(1)), "{running:#}");
    }
    assert_done_once(&fleet, &host, &job).await;
}
