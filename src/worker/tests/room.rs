//! Room on the work directory's disk: finished jobs make it, and a host that has none takes no job and says so.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Host, may_mount, until};

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// What the newest heartbeat said of the host's fitness; none if it said nothing of it.
fn unfit(shared: &Shared) -> Option<&str> {
    shared.heartbeats.last().and_then(|beat| beat["unfit"].as_str())
}

#[tokio::test]
async fn a_host_without_room_says_so_and_gives_the_job_back() -> io::Result<()> {
    let fake = Fake::start().await?;
    // No disk has so much.
    let host = Host::with_script("exit 0")?.flags(&["--persistent", "--keep-free", "1000000TiB"]);
    let agent = host.start(&fake)?;
    let why = fake.until("a registration", |shared| Some(shared.registers.first()?["unfit"].clone())).await;
    let place = format!("is free on the disk of {}/state", host.path().display());
    assert!(why.as_str().is_some_and(|why| why.starts_with("less than ") && why.ends_with(&place)), "{why}");
    fake.offer("j_1", 1, &config());
    let report = fake.status("requeue").await;
    assert_eq!(report["error"], format!("the worker has no room for a job: {}", why.as_str().unwrap_or_default()));
    assert_eq!(fake.words(), ["starting", "requeue"]);
    fake.until("a heartbeat that says it", |shared| (unfit(shared) == why.as_str()).then_some(())).await;
    agent.signal(Signal::SIGTERM)?;
    let (_, said) = agent.end().await?;
    let (_, report) = host.command(&["doctor", "--keep-free", "1000000TiB"]).await?;
    assert!(report.contains("fail  disk: ") && report.contains(" are to stay free (--keep-free)"), "{report}");
    assert_eq!(said.matches("no new job is taken: less than").count(), 1, "{said}");
    Ok(())
}

/// The first one fills the disk, and ends when it may.
const SCRIPT: &str = "[ $SIMPLETUNER_JOB_ID = j_1 ] || exit 0
dd if=/dev/zero of=../output/big bs=1M count=60 2>/dev/null; touch filled
until [ -e ../control/go ]; do sleep 0.05; done";

#[tokio::test]
async fn a_finished_job_makes_room_for_the_next() -> io::Result<()> {
    if !may_mount() {
        return Ok(());
    }
    let fake = Fake::start().await?;
    let flags = ["--persistent", "--max-jobs", "2", "--keep-free", "48MiB"];
    let host = Host::with_script(SCRIPT)?.on_disk_of("96m").flags(&flags);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = agent.sees(host.attempt("j_1", 1).path())?;
    until("a full disk", || dir.join("work/filled").exists().then_some(())).await;
    fake.offer("j_2", 1, &config());
    let report = fake.status("requeue").await;
    assert_eq!(report["job_id"], "j_2");
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no room for a job: less than 48 MiB is free on the disk of "), "{error}");
    fake.until("a heartbeat that says it", |shared| unfit(shared).map(drop)).await;
    assert!(dir.exists(), "it runs");
    std::fs::write(dir.join("control/go"), "")?;
    fake.status("completed").await;
    until("room", || (!dir.exists()).then_some(())).await;
    fake.until("a heartbeat that says that it is fit", |shared| unfit(shared).is_none().then_some(())).await;
    fake.offer("j_3", 1, &config());
    fake.until("the next job", |shared| {
        shared.statuses.iter().find(|said| said["job_id"] == "j_3" && said["status"] == "completed").map(drop)
    })
    .await;
    agent.kill().await
}
