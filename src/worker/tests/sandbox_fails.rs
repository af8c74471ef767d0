//! A sandbox that cannot be set up when a job starts: the host's fault, and the trainer does not run without it.

use std::io;
use std::process::Command;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::TestHost;

/// Starts the agent in its own user namespace, whose limits a test can set.
const WRAPPER_COMMAND: [&str; 3] = ["unshare", "--user", "--map-root-user"];

#[tokio::test]
async fn job_is_requeued_if_its_sandbox_fails() -> io::Result<()> {
    if !Command::new(WRAPPER_COMMAND[0]).args(&WRAPPER_COMMAND[1..]).arg("true").status()?.success() {
        println!("skipped, because no user namespaces can be created here");
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo it ran")?
        .flags(&["--persistent", "--sandbox-min", "full"])
        .with_wrapper(&WRAPPER_COMMAND);
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(registration["sandbox"]["most"], "full", "{registration}");
    let mut limit = Command::new("nsenter");
    limit.args(["--user", "--preserve-credentials", "--target", &agent.pid()?.to_string()]);
    limit.args(["sh", "-c", "echo 0 > /proc/sys/user/max_mnt_namespaces"]);
    assert!(limit.status()?.success());
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let final_report =
        |shared: &mut FakeState| shared.statuses.iter().find(|report| report["status"] != "starting").cloned();
    let report: Value = fake.wait_until("an end", final_report).await;
    assert_eq!(report["status"], "requeue", "{report}");
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("sandbox cannot be set up on this host") && error.contains("namespaces"), "{error}");
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(!log.contains("it ran"), "{log}");
    agent.kill().await
}
