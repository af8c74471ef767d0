//! A sandbox that cannot be made when a job starts: the host's fault, and nothing runs with less.

use std::io;
use std::process::Command;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::Host;

/// Starts the agent in a user namespace of its own, whose limits a test can set.
const BEGUN_BY: [&str; 3] = ["unshare", "--user", "--map-root-user"];

#[tokio::test]
async fn a_job_goes_back_with_the_reason_and_runs_no_less_confined() -> io::Result<()> {
    if !Command::new(BEGUN_BY[0]).args(&BEGUN_BY[1..]).arg("true").status()?.success() {
        println!("skipped, as no user namespaces can be made here");
        return Ok(());
    }
    let fake = Fake::start().await?;
    let host = Host::with_script("echo it ran")?.flags(&["--persistent", "--sandbox-min", "full"]).begun_by(&BEGUN_BY);
    let agent = host.start(&fake)?;
    let registration = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!(registration["sandbox"]["most"], "full", "{registration}");
    let mut limit = Command::new("nsenter");
    limit.args(["--user", "--preserve-credentials", "--target", &agent.pid()?.to_string()]);
    limit.args(["sh", "-c", "echo 0 > /proc/sys/user/max_mnt_namespaces"]);
    assert!(limit.status()?.success());
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let ended = |shared: &mut Shared| shared.statuses.iter().find(|one| one["status"] != "starting").cloned();
    let report: Value = fake.until("an end", ended).await;
    assert_eq!(report["status"], "requeue", "{report}");
    let why = report["error"].as_str().unwrap_or_default();
    assert!(why.contains("sandbox cannot be set up on this host") && why.contains("namespaces"), "{why}");
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    assert!(!log.contains("it ran"), "{log}");
    agent.kill().await
}
