//! From the offer to the trainer's start.

use std::collections::BTreeSet;
use std::io;

use nix::sys::signal::Signal;
use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{AgentProcess, TestHost, wait_until};
use crate::worker::clock;
use crate::worker::files::SupervisorRecord;
use crate::worker::process::{self, ProcId};

/// A trainer that runs until the file `control/gate` exists.
const WAITING: &str = "while [ ! -e ../control/gate ]; do sleep 0.02; done";

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
    let supervisors = agent.supervisors()?;
    assert_eq!(supervisors.len(), 1);
    agent.kill().await?;
    wait_until("its exit", || supervisors.iter().all(|supervisor| !supervisor.is_alive()).then_some(())).await;
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
        let state: Option<crate::worker::files::AttemptState> = dir.read_json("state.json").ok().flatten();
        state.is_some_and(|state| state.delivered).then_some(())
    })
    .await;
    let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
    assert_eq!(process::find_by_environment(&marker), []);
    assert!(!dir.join("supervisor.json").exists());
    agent.kill().await?;
    Ok(())
}

/// Waits until the agent has this number of supervisors.
async fn wait_for_supervisors(agent: &AgentProcess, count: usize) -> Vec<ProcId> {
    wait_until("supervisors", || agent.supervisors().ok().filter(|found| found.len() == count)).await
}

#[tokio::test]
async fn supervisor_is_started_in_advance_and_used_again() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(WAITING)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    let idle = wait_for_supervisors(&agent, 1).await;
    for (attempt, job) in ["j_1", "j_2", "j_3"].into_iter().enumerate() {
        fake.offer_inline(job, 1, &config());
        assert_eq!(host.supervisor(job, 1).await.supervisor, idle[0], "{job}");
        std::fs::write(host.attempt(job, 1).control_dir().join("gate"), "")?;
        fake.wait_until("its end", |shared| {
            let ended = shared.statuses.iter().filter(|report| report["status"] == "completed").count();
            (ended == attempt + 1).then_some(())
        })
        .await;
        let log = std::fs::read_to_string(host.attempt(job, 1).join("supervisor.log"))?;
        assert_eq!(log, format!("supervised by process {}\n", idle[0].pid), "{job}");
    }
    let groups: BTreeSet<_> = ["j_1", "j_2", "j_3"]
        .map(|job| host.attempt(job, 1).read_json("supervisor.json"))
        .into_iter()
        .filter_map(|record: io::Result<Option<SupervisorRecord>>| record.ok()??.cgroup)
        .collect();
    assert!(groups.is_empty() || groups.len() == 3, "each attempt has a group of its own: {groups:?}");
    wait_until("no group of an ended job", || groups.iter().all(|group| !group.exists()).then_some(())).await;
    assert_eq!(agent.supervisors()?, idle);
    agent.kill().await?;
    wait_until("its exit", || (!idle[0].is_alive()).then_some(())).await;
    Ok(())
}

#[tokio::test]
async fn killed_idle_supervisor_is_replaced() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo trained")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    let idle = wait_for_supervisors(&agent, 1).await;
    idle[0].signal(Signal::SIGKILL);
    wait_until("its death", || (!idle[0].is_alive()).then_some(())).await;
    fake.offer_inline("j_1", 1, &config());
    fake.wait_for_status("completed").await;
    assert_ne!(host.supervisor("j_1", 1).await.supervisor, idle[0]);
    agent.kill().await
}

#[tokio::test]
async fn concurrent_jobs_have_supervisors_of_their_own() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(WAITING)?.flags(&["--persistent", "--max-jobs", "2"]);
    let agent = host.start(&fake)?;
    for job in ["j_1", "j_2"] {
        fake.offer_inline(job, 1, &config());
        host.supervisor(job, 1).await;
    }
    let used: BTreeSet<_> =
        [host.supervisor("j_1", 1).await, host.supervisor("j_2", 1).await].map(|record| record.supervisor.pid).into();
    assert_eq!(used.len(), 2);
    // No third one: there can be no third job.
    let all: BTreeSet<_> = agent.supervisors()?.iter().map(|supervisor| supervisor.pid).collect();
    assert_eq!(all, used);
    for job in ["j_1", "j_2"] {
        std::fs::write(host.attempt(job, 1).control_dir().join("gate"), "")?;
    }
    fake.wait_until("both ends", |shared| {
        (shared.statuses.iter().filter(|report| report["status"] == "completed").count() == 2).then_some(())
    })
    .await;
    agent.kill().await
}
