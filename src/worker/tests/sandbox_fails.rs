//! A sandbox that cannot be made when a job starts: the host's fault, and nothing runs with less.

use std::io;
use std::process::Command;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::TestHost;

/// Starts the agent in a user namespace of its own, whose limits a test can set.
const WRAPPER_COMMAND: [&str; 3] = ["unshare", "--user", "--map-root-user"];

#[tokio::test]
async fn job_is_requeued_if_its_sandbox_fails() -> io::Result<()> {
    if !Command::new(WRAPPER_COMMAND[0]).args(&WRAPPER_COMMAND[1..]).arg("true").status()?.success() {
        println!("skipped, as no user namespaces can be made here");
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
    let ended = |shared: &mut FakeState| shared.statuses.iter().find(|one| one["status"] != "starting").cloned();
    let report: Value = fake.wait_until("an end", ended).await;
    assert_eq!(report["status"], "requeue", "{report}");
    let why = report["error"].as_str().unwrap_or_default();
    assert!(why.contains("sandbox cannot be set up on this host") && why.contains("namespaces"), "{why}");
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(!log.contains("it ran"), "{log}");
    agent.kill().await
}
