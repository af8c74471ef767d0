//! A host that costs by the hour exits by itself when there is no work.

use std::io;

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

#[tokio::test]
async fn idle_agent_disconnects() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (code, output) =
        TestHost::with_script("")?.flags(&["--persistent", "--max-idle", "1s"]).start(&fake)?.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("no job for 1 s (--max-idle)"), "{output}");
    assert_eq!(fake.state().disconnects[0]["left_running"], json!([]));
    Ok(())
}

#[tokio::test]
async fn job_counts_until_its_end_is_delivered() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().failing_ends = 2;
    // The first job alone takes longer than the idle limit.
    let mut host = TestHost::with_script("sleep 4; echo done")?.flags(&["--persistent"]);
    host.variables.push(("SIMPLETUNER_MAX_IDLE".to_owned(), "3".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("completed").await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("a heartbeat after the job", |shared| (shared.heartbeats.len() > heartbeat_count).then_some(()))
        .await;
    fake.offer("j_2", 1, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(
        fake.reported_statuses(),
        ["starting", "running", "completed", "starting", "running", "completed"],
        "{output}"
    );
    Ok(())
}
