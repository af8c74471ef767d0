//! The disk limit of a job.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes this many files one after another, and saves when it is asked to stop.
fn writer_script(paths: &str) -> String {
    format!(
        "trap 'cat ../control/stop > stopped; exit 143' TERM; for at in {paths}; do \
         mkdir -p $at && dd if=/dev/zero of=$at/big bs=1M count=3 2>/dev/null; sync $at/big; done; echo written\n\
         while [ ! -e ../control/go ]; do sleep 0.02; done"
    )
}

#[tokio::test]
async fn job_over_its_disk_limit_is_stopped_with_the_reason() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host =
        TestHost::with_script(&writer_script("../output . $TMPDIR"))?.flags(&["--persistent", "--job-disk", "8MiB"]);
    // Only a sandboxed job has its own temporary directory.
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), "files".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    let written = ["8 MiB", "9 MiB"].iter().any(|size| error.contains(&format!("has written {size} ")));
    assert!(written && error.contains("its limit of 8 MiB"), "{error}");
    let stop_file: Value =
        serde_json::from_slice(&std::fs::read(host.attempt("j_1", 1).working_dir().join("stopped"))?)?;
    assert_eq!(stop_file["reason"], "disk", "it could save its work");
    agent.kill().await
}

#[tokio::test]
async fn existing_home_files_do_not_count() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let paths = "$HOME/$SIMPLETUNER_JOB_ID";
    let script =
        format!("[ $SIMPLETUNER_JOB_ID = j_1 ] || set -- {paths}/more\n{}", writer_script(&format!("{paths} $@")));
    let mut host = TestHost::with_script(&script)?.flags(&["--persistent", "--job-disk", "5MiB"]);
    // Only a sandboxed job has its own home directory.
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), "files".to_owned()));
    let agent = host.start(&fake)?;
    fake.state().offer_extra = json!({"submitted_by": "bob"});
    fake.offer("j_1", 1, &config());
    fake.wait_until("its output", |shared| shared.log.ends_with(b"written\n").then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    // It writes six, in addition to the three that exist.
    fake.offer("j_2", 1, &config());
    let report = fake.wait_for_status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(["5 MiB", "6 MiB"].iter().any(|size| error.contains(&format!("has written {size} "))), "{error}");
    agent.kill().await
}
