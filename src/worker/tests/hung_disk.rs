//! The work directory hangs for the supervisor: its reads there never return. The lease is enforced nevertheless.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde_json::json;

use super::exclusive::start_exclusive_job;
use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, process_by_inner_pid, wait_until};
use crate::worker::clock;
use crate::worker::files::{AttemptDir, AttemptExit, LeaseRecord, StopCause, SupervisorRecord};
use crate::worker::process::ProcId;

/// Replaces a file by a pipe without a writer: its reader blocks.
fn hang(dir: &AttemptDir, name: &str) -> io::Result<()> {
    let pipe = dir.join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU)?;
    fs::rename(pipe, dir.join(name))
}

/// Waits until a reader blocks. Dropping the result unblocks it.
async fn wait_until_hanging(dir: &AttemptDir, name: &str) -> File {
    let pipe = dir.join(name);
    // It can only be opened like this while there is a reader.
    let open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&pipe).ok();
    wait_until("a reader", open).await
}

/// Unblocks the reader, without a file.
async fn unhang(dir: &AttemptDir, name: &str) -> io::Result<()> {
    let blocked = wait_until_hanging(dir, name).await;
    fs::remove_file(dir.join(name))?;
    drop(blocked);
    Ok(())
}

fn lease(dir: &AttemptDir) -> io::Result<LeaseRecord> {
    dir.read_json("lease.json")?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Lets the supervisor's reads hang, so that the lease is not renewed. Waits until the trainer is dead, in time.
async fn hang_and_wait_until_dead(dir: &AttemptDir, record: &SupervisorRecord) -> io::Result<()> {
    let end = lease(dir)?.end_boot_ms;
    for name in ["lease.json", "stop.json"] {
        hang(dir, name)?;
    }
    wait_until("the trainer's exit", || (!record.trainer.is_alive()).then_some(())).await;
    let last_alive: u64 = fs::read_to_string(dir.working_dir().join("beat"))?.parse().map_err(io::Error::other)?;
    assert!(last_alive < end, "alive {} ms after its lease", last_alive.saturating_sub(end));
    println!("last alive {} ms before the lease expired", end - last_alive);
    assert!(record.supervisor.is_alive() && !dir.join("exit.json").exists(), "nothing hung");
    for name in ["lease.json", "stop.json"] {
        unhang(dir, name).await?;
    }
    Ok(())
}

async fn exit(dir: &AttemptDir) -> AttemptExit {
    wait_until("the end", || dir.read_json("exit.json").ok().flatten()).await
}

#[tokio::test]
async fn lease_expiry_is_enforced_and_reported() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    let (dir, record) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    agent.kill().await?;
    hang_and_wait_until_dead(&dir, &record).await?;
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.signal), (Some(StopCause::Lease), Some(9)), "{exit:?}");
    let agent = host.start(&fake)?;
    let report = fake.wait_for_status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no contact with the orchestrator") && error.contains("exclusive"), "{error}");
    agent.kill().await
}

#[tokio::test]
async fn earlier_stop_cause_is_kept() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    let (dir, record) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    fake.stop("j_1", 1, "cancelled");
    wait_until("the stop file", || dir.stop_file().exists().then_some(())).await;
    agent.kill().await?;
    hang_and_wait_until_dead(&dir, &record).await?;
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.signal), (Some(StopCause::Cancelled), Some(9)), "{exit:?}");
    Ok(())
}

/// Only reads of stop requests hang: the lease is renewed.
#[tokio::test]
async fn renewed_lease_is_seen_while_other_reads_hang() -> io::Result<()> {
    let (fake, host, agent) = start_exclusive_job().await?;
    let (dir, record) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    hang(&dir, "stop.json")?;
    let blocked = wait_until_hanging(&dir, "stop.json").await;
    let first = lease(&dir)?.end_boot_ms;
    wait_until("the end of that lease", || (clock::boot_ms() > first + 1_000).then_some(())).await;
    assert!(record.trainer.is_alive());
    fs::remove_file(dir.join("stop.json"))?;
    drop(blocked);
    fake.stop("j_1", 1, "cancelled");
    agent.kill().await
}

/// The process whose PID the trainer wrote into a file.
fn trainer_process(dir: &AttemptDir, record: &SupervisorRecord, name: &str) -> io::Result<ProcId> {
    let number = fs::read_to_string(dir.working_dir().join(name))?.trim().parse().map_err(io::Error::other)?;
    process_by_inner_pid(record.trainer, number).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Processes that the trainer left behind are killed with the lease too, but its own exit is reported.
#[tokio::test]
async fn own_exit_is_reported_despite_the_lease() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().offer_extra = json!({"exclusive": true});
    let script = "sleep 1000 & echo $! > left; echo $$ > self; echo beating; \
                  while [ ! -e ../control/go ]; do sleep 0.02; done; exit 3";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    let (dir, record) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    let [trainer, orphan] = ["self", "left"].map(|name| trainer_process(&dir, &record, name));
    let (trainer, orphan) = (trainer?, orphan?);
    agent.kill().await?;
    for name in ["lease.json", "stop.json"] {
        hang(&dir, name)?;
    }
    let blocked = (wait_until_hanging(&dir, "stop.json").await, wait_until_hanging(&dir, "lease.json").await);
    fs::write(dir.control_dir().join("go"), "")?;
    wait_until("the trainer's end", || (!trainer.is_alive()).then_some(())).await;
    assert!(orphan.is_alive(), "the remaining process has exited");
    wait_until("the exit of the remaining process", || (!orphan.is_alive()).then_some(())).await;
    for name in ["lease.json", "stop.json"] {
        fs::remove_file(dir.join(name))?;
    }
    drop(blocked);
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.code), (None, Some(3)), "{exit:?}");
    Ok(())
}

/// The agent hangs with one job, but its heartbeats and another job continue.
#[tokio::test]
async fn agent_continues_with_other_jobs() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent", "--max-jobs", "2"]);
    let agent = host.start(&fake)?;
    let has_status = |shared: &FakeState, job: &str, status: &str| {
        shared.statuses.iter().any(|report| report["job_id"] == job && report["status"] == status).then_some(())
    };
    for job in ["j_1", "j_2"] {
        fake.offer(job, 1, &json!({"config.json": "{}"}));
        fake.wait_until("it runs", |shared| has_status(shared, job, "running")).await;
    }
    let dir = host.attempt("j_1", 1);
    // The agent reads it for the report of the end.
    hang(&dir, "log.json")?;
    fake.stop("j_1", 1, "cancelled");
    let blocked = wait_until_hanging(&dir, "log.json").await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 2).then_some(())).await;
    fake.stop("j_2", 1, "cancelled");
    fake.wait_until("the end of the other job", |shared| has_status(shared, "j_2", "cancelled")).await;
    assert_eq!(has_status(&fake.state(), "j_1", "cancelled"), None, "nothing hung");
    fs::remove_file(dir.join("log.json"))?;
    drop(blocked);
    fake.wait_until("its end", |shared| has_status(shared, "j_1", "cancelled")).await;
    agent.kill().await
}
