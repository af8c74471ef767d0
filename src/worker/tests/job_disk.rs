//! What a job may write to its worker's disk.

use std::io;

use serde_json::{Value, json};

use super::fake::Fake;
use super::host::Host;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes so much, one after another, and saves when it is asked to stop.
fn writer(places: &str) -> String {
    format!(
        "trap 'cat ../control/stop > stopped; exit 143' TERM; for at in {places}; do \
         mkdir -p $at && dd if=/dev/zero of=$at/big bs=1M count=3 2>/dev/null; sync $at/big; done; echo written\n\
         while [ ! -e ../control/go ]; do sleep 0.02; done"
    )
}

#[tokio::test]
async fn a_job_that_writes_too_much_is_stopped_and_told_why() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script(&writer("../output . $TMPDIR"))?.flags(&["--persistent", "--job-disk", "8MiB"]);
    // Only a confined job has temporary files of its own.
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), "files".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    let written = ["8 MiB", "9 MiB"].iter().any(|size| error.contains(&format!("has written {size} ")));
    assert!(written && error.contains("may write 8 MiB"), "{error}");
    let told: Value = serde_json::from_slice(&std::fs::read(host.attempt("j_1", 1).work().join("stopped"))?)?;
    assert_eq!(told["reason"], "disk", "it could save its work");
    agent.kill().await
}

#[tokio::test]
async fn what_was_in_the_home_before_is_not_the_jobs() -> io::Result<()> {
    let fake = Fake::start().await?;
    let places = "$HOME/$SIMPLETUNER_JOB_ID";
    let script = format!("[ $SIMPLETUNER_JOB_ID = j_1 ] || set -- {places}/more\n{}", writer(&format!("{places} $@")));
    let mut host = Host::with_script(&script)?.flags(&["--persistent", "--job-disk", "5MiB"]);
    // Only a confined job has a home of its own.
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), "files".to_owned()));
    let agent = host.start(&fake)?;
    fake.shared().offer_more = json!({"submitted_by": "bob"});
    fake.offer("j_1", 1, &config());
    fake.until("what it writes", |shared| shared.log.ends_with(b"written\n").then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    // It writes six, beside the three that are there.
    fake.offer("j_2", 1, &config());
    let report = fake.status("failed").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(["5 MiB", "6 MiB"].iter().any(|size| error.contains(&format!("has written {size} "))), "{error}");
    agent.kill().await
}
