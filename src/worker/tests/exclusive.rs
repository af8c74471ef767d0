//! Exclusive jobs: nothing of a trainer is alive when its lease ends, whatever has become of agent and network.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake::Fake;
use super::host::{Agent, Host, until};
use crate::clock;
use crate::files::Lease;

/// Writes down by the lease's own clock when it was last alive, in ms; ignores being asked.
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
pub async fn beating() -> io::Result<(Fake, Host, Agent)> {
    beating_for(Fake::start().await?).await
}

async fn beating_for(fake: Fake) -> io::Result<(Fake, Host, Agent)> {
    fake.shared().offer_more = json!({"exclusive": true});
    let host = Host::with_python(BEATING)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    Ok((fake, host, agent))
}

/// Waits until the trainer is dead, and shows that it was so in time. How long before the end it last lived, in ms.
async fn dead_in_time(host: &Host) -> io::Result<u64> {
    let dir = host.attempt("j_1", 1);
    let running = host.supervisor("j_1", 1).await;
    until("the trainer's death", || (!running.trainer.is_alive()).then_some(())).await;
    let noticed = clock::boot_ms();
    let lease: Lease = dir.read("lease.json")?.ok_or(io::ErrorKind::NotFound)?;
    let beat: u64 = std::fs::read_to_string(dir.work().join("beat"))?.parse().map_err(io::Error::other)?;
    assert!(beat < lease.end_boot_ms, "alive {} ms after its lease", beat - lease.end_boot_ms);
    assert!(lease.end_boot_ms - beat < 2_500, "stopped {} ms before its lease", lease.end_boot_ms - beat);
    println!("last alive {} ms before the lease's end; noticed at {noticed}", lease.end_boot_ms - beat);
    until("the end", || dir.join("exit.json").exists().then_some(())).await;
    Ok(lease.end_boot_ms - beat)
}

#[tokio::test]
async fn cut_off_it_is_dead_before_its_lease_ends() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    fake.shared().away = true;
    dead_in_time(&host).await?;
    let told: Value = host.attempt("j_1", 1).read("control/stop")?.unwrap_or_default();
    assert_eq!(told["reason"], "lease", "{told}");
    assert_eq!(fake.words(), ["starting", "running"]);
    fake.shared().away = false;
    let report = fake.status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no contact with the orchestrator") && error.contains("exclusive"), "{error}");
    agent.kill().await
}

#[tokio::test]
async fn without_an_agent_it_is_dead_before_its_lease_ends() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    agent.kill().await?;
    dead_in_time(&host).await?;
    let agent = host.start(&fake)?;
    fake.status("requeue").await;
    agent.kill().await
}

#[tokio::test]
async fn a_stopped_agent_changes_nothing() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    agent.signal(Signal::SIGSTOP)?;
    dead_in_time(&host).await?;
    agent.signal(Signal::SIGCONT)?;
    fake.status("requeue").await;
    agent.kill().await
}

#[tokio::test]
async fn with_contact_again_in_time_it_goes_on() -> io::Result<()> {
    let fake = Fake::start().await?;
    // Long enough that no busy machine misses the rest of it.
    fake.shared().heartbeat_timeout = Some(15);
    let (fake, host, agent) = beating_for(fake).await?;
    let running = host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    let end = || dir.read::<Lease>("lease.json").ok().flatten().map_or(0, |lease| lease.end_boot_ms);
    fake.shared().away = true;
    let first = end();
    fake.until("some seconds without contact", |shared| (shared.missed > 2).then_some(())).await;
    fake.shared().away = false;
    until("a longer lease", || (end() > first).then_some(())).await;
    until("the end of the first lease", || (clock::boot_ms() > first + 500).then_some(())).await;
    assert!(running.trainer.is_alive());
    assert_eq!(fake.words(), ["starting", "running"]);
    assert!(!dir.stop_file().exists());
    fake.stop("j_1", 1, "cancelled");
    agent.kill().await
}

#[tokio::test]
async fn another_reason_is_kept_but_not_its_patience() -> io::Result<()> {
    let (fake, host, agent) = beating().await?;
    fake.stop("j_1", 1, "cancelled");
    until("the stop file", || host.attempt("j_1", 1).stop_file().exists().then_some(())).await;
    // 30 s to end, which it would use up.
    fake.shared().away = true;
    dead_in_time(&host).await?;
    fake.shared().away = false;
    fake.status("cancelled").await;
    agent.kill().await
}

#[tokio::test]
async fn it_does_not_start_without_a_lease() -> io::Result<()> {
    let (_fake, host, agent) = beating().await?;
    agent.kill().await?;
    dead_in_time(&host).await?;
    // The same again, as an agent would begin it whose lease has ended meanwhile.
    let first = host.attempt("j_1", 1);
    let dir = host.attempt("j_2", 1);
    for lease in [true, false] {
        std::fs::create_dir_all(dir.bundle())?;
        std::fs::copy(first.join("spec.json"), dir.join("spec.json"))?;
        std::fs::write(dir.bundle().join("config.json"), "{}")?;
        if lease {
            std::fs::copy(first.join("lease.json"), dir.join("lease.json"))?;
        }
        host.supervise(&dir).await?;
        let exit: crate::files::Exit = dir.read("exit.json")?.ok_or(io::ErrorKind::NotFound)?;
        assert_eq!(exit.stopped, Some(crate::files::StopCause::Lease));
        assert!(!dir.join("supervisor.json").exists() && !dir.work().join("beat").exists());
        std::fs::remove_dir_all(dir.path())?;
    }
    Ok(())
}

#[tokio::test]
async fn another_job_does_not_mind() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_python(BEATING)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the trainer", |shared| shared.log.ends_with(b"beating\n").then_some(())).await;
    fake.shared().away = true;
    let began = clock::boot_ms();
    until("more than a lease", || (clock::boot_ms() > began + 5_000).then_some(())).await;
    let running = host.supervisor("j_1", 1).await;
    assert!(running.trainer.is_alive() && !host.attempt("j_1", 1).join("lease.json").exists());
    agent.kill().await
}
