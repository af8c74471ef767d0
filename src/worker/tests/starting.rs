//! From the offer to the trainer's start.

use std::collections::BTreeSet;
use std::io;

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use crate::{clock, process};

fn config() -> serde_json::Value {
    json!({"config.json": "{\"from\": \"offer\"}"})
}

/// The routes of a job to which requests were sent.
fn requested_routes(fake: &FakeOrchestrator) -> BTreeSet<String> {
    fake.state().traces.iter().filter_map(|trace| trace.split(' ').next()).map(str::to_owned).collect()
}

#[tokio::test]
async fn nothing_is_requested_that_the_offer_contains() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("cat \"$CONFIG_PATH\"")?;
    let agent = host.start(&fake)?;
    fake.offer_inline("j_1", 1, &config());
    fake.wait_for_status("completed").await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(log.contains("\"from\": \"offer\""), "{log}");
    assert_eq!(requested_routes(&fake), ["logs", "status"].map(str::to_owned).into());
    agent.kill().await?;
    Ok(())
}

#[tokio::test]
async fn damaged_bundle_in_the_offer_is_downloaded() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("cat \"$CONFIG_PATH\"")?;
    let agent = host.start(&fake)?;
    fake.offer_with_body("j_1", 1, &config(), "{\"files\": {}}");
    fake.wait_for_status("completed").await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(log.contains("\"from\": \"offer\""), "{log}");
    assert_eq!(requested_routes(&fake), ["bundle", "logs", "status"].map(str::to_owned).into());
    agent.kill().await?;
    Ok(())
}

#[tokio::test]
async fn trainer_starts_only_after_the_acceptance() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_acceptances = true;
    let host = TestHost::with_script("echo trained")?;
    let agent = host.start(&fake)?;
    fake.offer_inline("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    // The supervisor has prepared everything.
    wait_until("a prepared supervisor", || dir.join("events.jsonl").exists().then_some(())).await;
    fake.wait_until("another try to accept", |shared| (shared.rejected_acceptances > 1).then_some(())).await;
    assert!(!dir.join("supervisor.json").exists());
    assert_eq!(fake.reported_statuses(), [""; 0]);
    fake.state().rejects_acceptances = false;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await?;
    Ok(())
}

#[tokio::test]
async fn supervisor_without_a_permit_exits_with_its_agent() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_acceptances = true;
    let host = TestHost::with_script("echo trained")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer_inline("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    wait_until("a prepared supervisor", || dir.join("events.jsonl").exists().then_some(())).await;
    agent.kill().await?;
    let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
    wait_until("its exit", || process::find_by_environment(&marker).is_empty().then_some(())).await;
    assert!(!dir.join("supervisor.json").exists() && !dir.join("exit.json").exists());
    // The next agent starts over.
    fake.state().rejects_acceptances = false;
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await?;
    Ok(())
}

#[tokio::test]
async fn exclusive_job_completes_if_its_acceptance_takes_longer_than_a_lease() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_acceptances = true;
    fake.state().offer_extra = json!({"exclusive": true});
    let host = TestHost::with_script("echo trained")?;
    let agent = host.start(&fake)?;
    fake.offer_inline("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    wait_until("a prepared supervisor", || dir.join("events.jsonl").exists().then_some(())).await;
    // A lease of the fake orchestrator lasts four seconds.
    let lease_end = clock::boot_ms() + 4_000;
    wait_until("the end of a lease", || (clock::boot_ms() > lease_end).then_some(())).await;
    fake.state().rejects_acceptances = false;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await?;
    Ok(())
}

#[tokio::test]
async fn attempt_whose_acceptance_is_rejected_starts_no_trainer() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_reports = true;
    let host = TestHost::with_script("echo trained")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer_inline("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    wait_until("the end of the attempt", || {
        let state: Option<crate::files::AttemptState> = dir.read_json("state.json").ok().flatten();
        state.is_some_and(|state| state.delivered).then_some(())
    })
    .await;
    let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
    wait_until("no supervisor", || process::find_by_environment(&marker).is_empty().then_some(())).await;
    assert!(!dir.join("supervisor.json").exists());
    agent.kill().await?;
    Ok(())
}
