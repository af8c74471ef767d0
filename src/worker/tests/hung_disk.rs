//! A work directory that hangs for the supervisor: what it reads there never answers. The lease ends all the same.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde_json::json;

use super::exclusive::beating;
use super::fake::{Fake, Shared};
use super::host::{Host, known_as, until};
use crate::clock;
use crate::files::{AttemptDir, Exit, Lease, Running, StopCause};
use crate::process::ProcId;

/// Puts a pipe that nobody writes to in a file's place: whoever reads it stands still.
fn hang(dir: &AttemptDir, name: &str) -> io::Result<()> {
    let pipe = dir.join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU)?;
    fs::rename(pipe, dir.join(name))
}

/// Waits until somebody stands still there. Dropping what this answers with lets them go.
async fn hanging(dir: &AttemptDir, name: &str) -> File {
    let pipe = dir.join(name);
    // It can be opened like this only while somebody reads.
    let open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&pipe).ok();
    until("somebody who reads it", open).await
}

/// Lets whoever stands still there go on, without a file.
async fn heal(dir: &AttemptDir, name: &str) -> io::Result<()> {
    let held = hanging(dir, name).await;
    fs::remove_file(dir.join(name))?;
    drop(held);
    Ok(())
}

fn lease(dir: &AttemptDir) -> io::Result<Lease> {
    dir.read("lease.json")?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// From here on the supervisor cannot read, and nobody renews its lease; until the trainer is dead, in time.
async fn dead_on_a_hung_disk(dir: &AttemptDir, running: &Running) -> io::Result<()> {
    let end = lease(dir)?.end_boot_ms;
    for name in ["lease.json", "stop.json"] {
        hang(dir, name)?;
    }
    until("the trainer's death", || (!running.trainer.is_alive()).then_some(())).await;
    let beat: u64 = fs::read_to_string(dir.work().join("beat"))?.parse().map_err(io::Error::other)?;
    assert!(beat < end, "alive {} ms after its lease", beat.saturating_sub(end));
    println!("last alive {} ms before the lease's end", end - beat);
    assert!(running.supervisor.is_alive() && !dir.join("exit.json").exists(), "nothing hung");
    for name in ["lease.json", "stop.json"] {
        heal(dir, name).await?;
    }
    Ok(())
}

async fn exit(dir: &AttemptDir) -> Exit {
    until("the end", || dir.read("exit.json").ok().flatten()).await
}

#[tokio::test]
async fn the_lease_ends_it_and_so_it_is_reported() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    let (dir, running) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    agent.kill().await?;
    dead_on_a_hung_disk(&dir, &running).await?;
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.signal), (Some(StopCause::Lease), Some(9)), "{exit:?}");
    let agent = host.start(&fake)?;
    let report = fake.status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no contact with the orchestrator") && error.contains("exclusive"), "{error}");
    agent.kill().await
}

#[tokio::test]
async fn why_it_was_asked_before_is_kept() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    let (dir, running) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    fake.stop("j_1", 1, "cancelled");
    until("the stop file", || dir.stop_file().exists().then_some(())).await;
    agent.kill().await?;
    dead_on_a_hung_disk(&dir, &running).await?;
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.signal), (Some(StopCause::Cancelled), Some(9)), "{exit:?}");
    Ok(())
}

/// What hangs is only where orders are read: the lease is renewed.
#[tokio::test]
async fn a_renewed_lease_is_seen_whatever_else_hangs() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    let (dir, running) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    hang(&dir, "stop.json")?;
    let held = hanging(&dir, "stop.json").await;
    let first = lease(&dir)?.end_boot_ms;
    until("the end of that lease", || (clock::boot_ms() > first + 1_000).then_some(())).await;
    assert!(running.trainer.is_alive());
    fs::remove_file(dir.join("stop.json"))?;
    drop(held);
    fake.stop("j_1", 1, "cancelled");
    agent.kill().await
}

/// The process whose number the trainer wrote into a file.
fn who(dir: &AttemptDir, running: &Running, name: &str) -> io::Result<ProcId> {
    let number = fs::read_to_string(dir.work().join(name))?.trim().parse().map_err(io::Error::other)?;
    known_as(running.trainer, number).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// What it left behind by itself dies with the lease too, and its own end stays its own.
#[tokio::test]
async fn an_end_of_its_own_stays_its_own() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().offer_more = json!({"exclusive": true});
    let script = "sleep 1000 & echo $! > left; echo $$ > self; echo beating; \
                  while [ ! -e ../control/go ]; do sleep 0.02; done; exit 3";
    let host = Host::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    let (dir, running) = (host.attempt("j_1", 1), host.supervisor("j_1", 1).await);
    let [trainer, left] = ["self", "left"].map(|name| who(&dir, &running, name));
    let (trainer, left) = (trainer?, left?);
    agent.kill().await?;
    for name in ["lease.json", "stop.json"] {
        hang(&dir, name)?;
    }
    let held = (hanging(&dir, "stop.json").await, hanging(&dir, "lease.json").await);
    fs::write(dir.control().join("go"), "")?;
    until("the trainer's end", || (!trainer.is_alive()).then_some(())).await;
    assert!(left.is_alive(), "what it left did not outlive it");
    until("the death of what it left", || (!left.is_alive()).then_some(())).await;
    for name in ["lease.json", "stop.json"] {
        fs::remove_file(dir.join(name))?;
    }
    drop(held);
    let exit = exit(&dir).await;
    assert_eq!((exit.stopped, exit.code), (None, Some(3)), "{exit:?}");
    Ok(())
}

/// The agent stands still with one job: not with its heartbeats, and not with another job.
#[tokio::test]
async fn an_agent_goes_on_beside_what_hangs() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent", "--max-jobs", "2"]);
    let agent = host.start(&fake)?;
    let has = |shared: &Shared, job: &str, status: &str| {
        shared.statuses.iter().any(|said| said["job_id"] == job && said["status"] == status).then_some(())
    };
    for job in ["j_1", "j_2"] {
        fake.offer(job, 1, &json!({"config.json": "{}"}));
        fake.until("it runs", |shared| has(shared, job, "running")).await;
    }
    hang(&host.attempt("j_1", 1), "exit.json")?;
    let held = hanging(&host.attempt("j_1", 1), "exit.json").await;
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats + 2).then_some(())).await;
    fake.stop("j_1", 1, "cancelled");
    fake.stop("j_2", 1, "cancelled");
    fake.until("the other's end", |shared| has(shared, "j_2", "cancelled")).await;
    assert_eq!(has(&fake.shared(), "j_1", "cancelled"), None, "nothing hung");
    drop(held);
    fake.until("its end", |shared| has(shared, "j_1", "cancelled")).await;
    agent.kill().await
}
