//! A host that cannot run jobs accepts none, and returns those that it got.

use std::io;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Waits until a heartbeat contains this.
async fn wait_for_heartbeat(fake: &FakeOrchestrator, condition: &str, is_expected: impl Fn(Option<&str>) -> bool) {
    fake.wait_until(condition, |shared| {
        is_expected(shared.heartbeats.last()?["unhealthy_reason"].as_str()).then_some(())
    })
    .await;
}

/// Offers a job with this configuration and returns its final report.
async fn run_job(fake: &FakeOrchestrator, job: &str, config_name: &str) -> Value {
    fake.offer_with(job, 1, &config(), json!({"config_name": config_name}));
    let is_end =
        |report: &&Value| report["job_id"] == job && !["starting", "running"].contains(&text(&report["status"]));
    fake.wait_until("its end", |shared| shared.statuses.iter().find(is_end).cloned()).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test]
async fn host_without_trainer_accepts_no_jobs_until_it_is_installed() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("")?;
    let program = host.path().join("trainer/late");
    let host = host.with_trainer_command(&program.display().to_string()).flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    let advice = "install it on this host, or set another with --trainer";
    let reason =
        format!("the trainer is missing: the program {program:?} does not exist or cannot be started ({advice})");
    assert_eq!(register["unhealthy_reason"], reason);
    let report = run_job(&fake, "j_1", "a").await;
    assert_eq!((text(&report["status"]), text(&report["unhealthy_reason"])), ("requeue", reason.as_str()));
    std::fs::write(&program, "#!/bin/sh\nexit 0\n")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let is_healthy = |register: &Value| register["unhealthy_reason"].is_null();
    fake.wait_until("a healthy host", |shared| shared.registrations.iter().any(is_healthy).then_some(())).await;
    assert_eq!(run_job(&fake, "j_2", "a").await["status"], "completed");
    std::fs::remove_file(&program)?;
    let report = run_job(&fake, "j_3", "a").await;
    assert_eq!(
        (text(&report["status"]), text(&report["unhealthy_reason"])),
        ("requeue", reason.as_str()),
        "the trainer was removed"
    );
    agent.kill().await
}

#[tokio::test]
async fn third_immediate_failure_in_a_row_requeues_the_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo No CUDA; exit 3")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    for (job, config, status) in [
        ("j_1", "a", "failed"),
        ("j_2", "a", "failed"),
        ("j_3", "a", "failed"),
        ("j_4", "b", "failed"),
        ("j_5", "c", "requeue"),
        ("j_6", "d", "requeue"),
    ] {
        let report = run_job(&fake, job, config).await;
        assert_eq!(report["status"], status, "{report}");
        let reason = text(&report["unhealthy_reason"]);
        assert_eq!(reason.contains("3 configurations in a row failed within 10 s"), status == "requeue", "{report}");
    }
    wait_for_heartbeat(&fake, "unhealthy_reason", |unhealthy_reason| unhealthy_reason.is_some()).await;
    assert_eq!(fake.state().statuses.iter().filter(|report| report["job_id"] == "j_6").count(), 2, "it never ran");
    fake.state().drain = true;
    let drained_at = fake.state().heartbeats.len() + 2;
    fake.wait_until("the drain", |shared| (shared.heartbeats.len() >= drained_at).then_some(())).await;
    fake.state().drain = false;
    wait_for_heartbeat(&fake, "a healthy host", |unhealthy_reason| unhealthy_reason.is_none()).await;
    assert_eq!(run_job(&fake, "j_7", "e").await["status"], "failed");
    agent.kill().await
}
