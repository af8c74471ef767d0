//! A host that costs by the hour ends by itself when there is no work.

use std::io;

use serde_json::json;

use super::fake::Fake;
use super::host::Host;

#[tokio::test]
async fn without_a_job_it_says_goodbye() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (code, said) = Host::with_script("")?.flags(&["--persistent", "--max-idle", "1s"]).start(&fake)?.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no job for 1 s (--max-idle)"), "{said}");
    assert_eq!(fake.shared().disconnects[0]["left_running"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_job_counts_until_its_end_is_delivered() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().failing_ends = 2;
    // The first job alone is longer than the agent would stay without one.
    let mut host = Host::with_script("sleep 4; echo done")?.flags(&["--persistent"]);
    host.variables.push(("SIMPLETUNER_MAX_IDLE".to_owned(), "3".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("completed").await;
    let beats = fake.shared().heartbeats.len();
    fake.until("it is still there", |shared| (shared.heartbeats.len() > beats).then_some(())).await;
    fake.offer("j_2", 1, &json!({"config.json": "{}"}));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed", "starting", "running", "completed"], "{said}");
    Ok(())
}
