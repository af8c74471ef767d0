//! Exclusive jobs: no process of a trainer is alive when its lease expires, whatever happened to the agent and the
//! network.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{AgentProcess, TestHost, wait_until};
use crate::worker::clock;
use crate::worker::files::LeaseRecord;

/// Records when it was last alive, in ms of the lease's clock; ignores SIGTERM.
const BEATING: &str = "
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('beating', flush=True)
while True:
    with open('beat.new', 'w') as file: file.write(str(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000))
    os.rename('beat.new', 'beat')
    time.sleep(0.005)
";

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// An exclusive job that runs, with the fake's heartbeat timeout of 4 s.
pub async fn start_exclusive_job() -> io::Result<(FakeOrchestrator, TestHost, AgentProcess)> {
    start_exclusive_job_with(FakeOrchestrator::start().await?).await
}

async fn start_exclusive_job_with(fake: FakeOrchestrator) -> io::Result<(FakeOrchestrator, TestHost, AgentProcess)> {
    fake.state().offer_extra = json!({"exclusive": true});
    let host = TestHost::with_python(BEATING)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    Ok((fake, host, agent))
}

/// Waits until the trainer is dead, and asserts that it died in time. Returns how long before the expiry it was last
/// alive, in ms.
async fn wait_until_dead(host: &TestHost) -> io::Result<u64> {
    let dir = host.attempt("j_1", 1);
    let record = host.supervisor("j_1", 1).await;
    wait_until("the trainer's exit", || (!record.trainer.is_alive()).then_some(())).await;
    let dead_at = clock::boot_ms();
    let lease: LeaseRecord = dir.read_json("lease.json")?.ok_or(io::ErrorKind::NotFound)?;
    let last_alive: u64 = std::fs::read_to_string(dir.working_dir().join("beat"))?.parse().map_err(io::Error::other)?;
    assert!(last_alive < lease.end_boot_ms, "alive {} ms after its lease", last_alive - lease.end_boot_ms);
    assert!(lease.end_boot_ms - last_alive < 2_500, "stopped {} ms before its lease", lease.end_boot_ms - last_alive);
    println!("last alive {} ms before the lease expired; noticed at {dead_at}", lease.end_boot_ms - last_alive);
    wait_until("the end", || dir.join("exit.json").exists().then_some(())).await;
    Ok(lease.end_boot_ms - last_alive)
}

#[tokio::test]
async fn disconnected_trainer_is_dead_before_its_lease_expires() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    fake.state().is_unavailable = true;
    wait_until_dead(&host).await?;
    let stop_file: Value = host.attempt("j_1", 1).read_json("control/stop")?.unwrap_or_default();
    assert_eq!(stop_file["reason"], "lease", "{stop_file}");
    assert_eq!(fake.reported_statuses(), ["starting", "running"]);
    fake.state().is_unavailable = false;
    let report = fake.wait_for_status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no contact with the orchestrator") && error.contains("exclusive"), "{error}");
    agent.kill().await
}

#[tokio::test]
async fn last_checkpoint_is_uploaded_after_the_end_of_the_lease() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    fake.state().is_unavailable = true;
    let checkpoint = host.attempt("j_1", 1).output_dir().join("checkpoint-3");
    std::fs::create_dir_all(&checkpoint)?;
    std::fs::write(checkpoint.join("weights"), "3")?;
    // A checkpoint that was written just before the kill would count as incomplete.
    let file = std::fs::File::options().write(true).open(checkpoint.join("weights"))?;
    file.set_modified(file.metadata()?.modified()? - std::time::Duration::from_mins(1))?;
    wait_until_dead(&host).await?;
    fake.state().is_unavailable = false;
    fake.wait_for_status("requeue").await;
    assert_eq!(fake.state().artifacts.keys().collect::<Vec<_>>(), ["checkpoint-3/weights"]);
    assert_eq!(fake.state().files.complete_checkpoints.len(), 1);
    agent.kill().await
}

#[tokio::test]
async fn trainer_without_agent_is_dead_before_its_lease_expires() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    agent.kill().await?;
    wait_until_dead(&host).await?;
    let agent = host.start(&fake)?;
    fake.wait_for_status("requeue").await;
    agent.kill().await
}

#[tokio::test]
async fn suspended_agent_does_not_extend_the_lease() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    agent.signal(Signal::SIGSTOP)?;
    wait_until_dead(&host).await?;
    agent.signal(Signal::SIGCONT)?;
    fake.wait_for_status("requeue").await;
    agent.kill().await
}

#[tokio::test]
async fn reconnect_in_time_keeps_the_trainer_running() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // Long enough that even a busy machine does not miss it.
    fake.state().heartbeat_timeout = Some(15);
    let (fake, host, agent) = start_exclusive_job_with(fake).await?;
    let record = host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    let end = || dir.read_json::<LeaseRecord>("lease.json").ok().flatten().map_or(0, |lease| lease.end_boot_ms);
    fake.state().is_unavailable = true;
    let first_end = end();
    fake.wait_until("some seconds without contact", |shared| (shared.unavailable_responses > 2).then_some(())).await;
    fake.state().is_unavailable = false;
    wait_until("a longer lease", || (end() > first_end).then_some(())).await;
    wait_until("the end of the first lease", || (clock::boot_ms() > first_end + 500).then_some(())).await;
    assert!(record.trainer.is_alive());
    assert_eq!(fake.reported_statuses(), ["starting", "running"]);
    assert!(!dir.stop_file().exists());
    fake.stop("j_1", 1, "cancelled");
    agent.kill().await
}

#[tokio::test]
async fn earlier_stop_cause_is_kept_without_its_grace_period() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    fake.stop("j_1", 1, "cancelled");
    wait_until("the stop file", || host.attempt("j_1", 1).stop_file().exists().then_some(())).await;
    // A grace period of 30 s, which it would use completely.
    fake.state().is_unavailable = true;
    wait_until_dead(&host).await?;
    fake.state().is_unavailable = false;
    fake.wait_for_status("cancelled").await;
    agent.kill().await
}

#[tokio::test]
async fn exclusive_job_does_not_start_without_a_lease() -> io::Result<()> {
    let (_fake, host, agent) = start_exclusive_job().await?;
    agent.kill().await?;
    wait_until_dead(&host).await?;
    // The same attempt again, as an agent would start it whose lease has expired meanwhile.
    let first = host.attempt("j_1", 1);
    let dir = host.attempt("j_2", 1);
    for lease in [true, false] {
        std::fs::create_dir_all(dir.bundle_dir())?;
        std::fs::copy(first.join("spec.json"), dir.join("spec.json"))?;
        std::fs::write(dir.bundle_dir().join("config.json"), "{}")?;
        if lease {
            std::fs::copy(first.join("lease.json"), dir.join("lease.json"))?;
        }
        host.supervise(&dir).await?;
        let exit: crate::worker::files::AttemptExit = dir.read_json("exit.json")?.ok_or(io::ErrorKind::NotFound)?;
        assert_eq!(exit.stopped, Some(crate::worker::files::StopCause::Lease));
        assert!(!dir.join("supervisor.json").exists() && !dir.working_dir().join("beat").exists());
        std::fs::remove_dir_all(dir.path())?;
    }
    Ok(())
}

#[tokio::test]
async fn other_jobs_outlive_the_lease() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(BEATING)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    fake.state().is_unavailable = true;
    let start = clock::boot_ms();
    wait_until("more time than a lease", || (clock::boot_ms() > start + 5_000).then_some(())).await;
    let record = host.supervisor("j_1", 1).await;
    assert!(record.trainer.is_alive() && !host.attempt("j_1", 1).join("lease.json").exists());
    agent.kill().await
}
