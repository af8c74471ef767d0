//! An agent that starts with much undelivered data first reports that it is online.

use std::fs::OpenOptions;
use std::io;
use std::time::Instant;

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;
use crate::worker::files::AttemptState;

/// Ten thousand chunks of a log.
const BACKLOG: u64 = 10_000 * 256 * 1024;

#[tokio::test]
async fn agent_registers_before_delivering_its_backlog() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().failing_ends = u32::MAX;
    let script = "if [ $SIMPLETUNER_JOB_ID = j_0 ]; then exec sleep 1000; fi; exit 3";
    let host = TestHost::with_script(script)?.flags(&["--persistent", "--max-jobs", "8"]);
    let agent = host.start(&fake)?;
    for number in 0..6 {
        fake.offer(&format!("j_{number}"), 1, &json!({"config.json": "{}"}));
    }
    for number in 1..6 {
        let dir = host.attempt(&format!("j_{number}"), 1);
        let final_report = || dir.read_json::<AttemptState>("state.json").ok()??.terminal;
        super::test_host::wait_until("an end that is rejected", final_report).await;
    }
    host.supervisor("j_0", 1).await;
    agent.kill().await?;
    OpenOptions::new().write(true).open(host.attempt("j_0", 1).log_path())?.set_len(BACKLOG)?;

    let before = fake.state().registrations.len();
    let started_at = Instant::now();
    let agent = host.start(&fake)?;
    let (register, delivered) = fake
        .wait_until("a registration", |shared| {
            Some((shared.registrations.get(before)?.clone(), shared.log_of("j_0", 1).len() as u64))
        })
        .await;
    println!(
        "registered {} ms after the start, with {delivered} of {BACKLOG} bytes delivered",
        started_at.elapsed().as_millis()
    );
    assert_eq!(register["attempts"].as_array().map(Vec::len), Some(6));
    assert!(delivered < BACKLOG, "it delivered everything before it registered");
    fake.wait_until("the first output", |shared| (!shared.log_of("j_0", 1).is_empty()).then_some(())).await;
    agent.kill().await
}
