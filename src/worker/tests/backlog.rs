//! An agent that starts with much to tell says first that it is there.

use std::fs::OpenOptions;
use std::io;
use std::time::Instant;

use serde_json::json;

use super::fake::Fake;
use super::host::Host;
use crate::files::State;

/// Ten thousand chunks of a log.
const BACKLOG: u64 = 10_000 * 256 * 1024;

#[tokio::test]
async fn an_agent_registers_before_it_has_told_what_it_has_to_tell() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().failing_ends = u32::MAX;
    let script = "if [ $SIMPLETUNER_JOB_ID = j_0 ]; then exec sleep 1000; fi; exit 3";
    let host = Host::with_script(script)?.flags(&["--persistent", "--max-jobs", "8"]);
    let agent = host.start(&fake)?;
    for number in 0..6 {
        fake.offer(&format!("j_{number}"), 1, &json!({"config.json": "{}"}));
    }
    for number in 1..6 {
        let dir = host.attempt(&format!("j_{number}"), 1);
        let ended = || dir.read::<State>("state.json").ok()??.terminal;
        super::host::until("an end that nobody takes", ended).await;
    }
    host.supervisor("j_0", 1).await;
    agent.kill().await?;
    OpenOptions::new().write(true).open(host.attempt("j_0", 1).log())?.set_len(BACKLOG)?;

    let before = fake.shared().registers.len();
    let began = Instant::now();
    let agent = host.start(&fake)?;
    let (register, told) = fake
        .until("a registration", |shared| Some((shared.registers.get(before)?.clone(), shared.log.len() as u64)))
        .await;
    println!("registered {} ms after the start, with {told} of {BACKLOG} bytes told", began.elapsed().as_millis());
    assert_eq!(register["attempts"].as_array().map(Vec::len), Some(6));
    assert!(told < BACKLOG, "it told all of it first");
    fake.until("some of it", |shared| (!shared.log.is_empty()).then_some(())).await;
    agent.kill().await
}
