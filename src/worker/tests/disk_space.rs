//! Disk space of the work directory: finished jobs are pruned, and a host without space accepts no jobs and reports
//! why.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, can_mount, wait_until};

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// The unhealthy reason in the newest heartbeat, if any.
fn unhealthy_reason(shared: &FakeState) -> Option<&str> {
    shared.heartbeats.last().and_then(|beat| beat["unhealthy_reason"].as_str())
}

#[tokio::test]
async fn host_without_disk_space_reports_it_and_requeues_the_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // No disk has so much.
    let host = TestHost::with_script("exit 0")?.flags(&["--persistent", "--keep-free", "1000000TiB"]);
    let agent = host.start(&fake)?;
    let reason = fake
        .wait_until("a registration", |shared| Some(shared.registrations.first()?["unhealthy_reason"].clone()))
        .await;
    let sentence_end = format!("is free on the disk of {}/state", host.path().display());
    assert!(
        reason.as_str().is_some_and(|reason| reason.starts_with("less than ") && reason.ends_with(&sentence_end)),
        "{reason}"
    );
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    assert_eq!(
        report["error"],
        format!("the worker has no disk space for a job: {}", reason.as_str().unwrap_or_default())
    );
    assert_eq!(fake.reported_statuses(), ["starting", "requeue"]);
    fake.wait_until("a heartbeat with the reason", |shared| {
        (unhealthy_reason(shared) == reason.as_str()).then_some(())
    })
    .await;
    agent.signal(Signal::SIGTERM)?;
    let (_, output) = agent.wait_for_exit().await?;
    let (_, report) = host.command(&["doctor", "--keep-free", "1000000TiB"]).await?;
    assert!(report.contains("fail  disk: ") && report.contains(" but --keep-free is "), "{report}");
    assert_eq!(output.matches("accepting no new jobs: less than").count(), 1, "{output}");
    Ok(())
}

/// The first job fills the disk, and exits when it is allowed to.
const SCRIPT: &str = "[ $SIMPLETUNER_JOB_ID = j_1 ] || exit 0
dd if=/dev/zero of=../output/big bs=1M count=60 2>/dev/null; touch filled
until [ -e ../control/go ]; do sleep 0.05; done";

#[tokio::test]
async fn finished_job_is_pruned_for_the_next() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let flags = ["--persistent", "--max-jobs", "2", "--keep-free", "48MiB"];
    let host = TestHost::with_script(SCRIPT)?.with_disk_size("96m").flags(&flags);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = agent.path_seen_by_agent(host.attempt("j_1", 1).path())?;
    wait_until("a full disk", || dir.join("work/filled").exists().then_some(())).await;
    fake.offer("j_2", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    assert_eq!(report["job_id"], "j_2");
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("no disk space for a job: less than 48 MiB is free on the disk of "), "{error}");
    fake.wait_until("a heartbeat with the reason", |shared| unhealthy_reason(shared).map(drop)).await;
    assert!(dir.exists(), "a running job was pruned");
    std::fs::write(dir.join("control/go"), "")?;
    fake.wait_for_status("completed").await;
    wait_until("disk space", || (!dir.exists()).then_some(())).await;
    fake.wait_until("a heartbeat without a reason", |shared| unhealthy_reason(shared).is_none().then_some(())).await;
    fake.offer("j_3", 1, &config());
    fake.wait_until("the next job", |shared| {
        shared.statuses.iter().find(|status| status["job_id"] == "j_3" && status["status"] == "completed").map(drop)
    })
    .await;
    agent.kill().await
}
