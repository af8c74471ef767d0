//! More output than there is space for, or than can be delivered.

use std::io;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, wait_until};

const MIB: usize = 1 << 20;
/// Length of every line of [`chatty_script`].
const LINE_LENGTH: usize = 64;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes numbered lines, and pauses for `pause` seconds after 64 KiB.
fn chatty_script(lines: usize, pause: f32) -> String {
    format!(
        "import os, time\nfor i in range(0, {lines}, 1024):\n    os.write(1, b''.join(b'%015d %s\\n' % (n, b'x' * 47) for n in range(i, min(i + 1024, {lines}))))\n    time.sleep({pause})\n"
    )
}

/// Asserts that the log equals the trainer's output, except for the dropped parts. Returns their size.
fn assert_equal_except_gaps(shared: &FakeState, lines: usize) -> usize {
    assert_eq!(shared.log.len(), lines * LINE_LENGTH, "offsets must be valid");
    let mut expected = Vec::with_capacity(shared.log.len());
    for number in 0..lines {
        expected.extend_from_slice(format!("{number:015} {}\n", "x".repeat(47)).as_bytes());
    }
    for (from, to) in &shared.dropped {
        assert!(shared.log[*from..*to].iter().all(|byte| *byte == b'?'));
        expected[*from..*to].fill(b'?');
    }
    let difference = shared.log.iter().zip(&expected).position(|(found, written)| found != written);
    assert_eq!(difference, None, "gaps {:?}", shared.dropped);
    shared.dropped.iter().map(|(from, to)| to - from).sum()
}

#[tokio::test]
async fn undelivered_output_is_limited_and_sent_with_a_gap() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_logs = true;
    let lines = 24 * MIB / LINE_LENGTH;
    let host = TestHost::with_python(&chatty_script(lines, 0.0))?.flags(&["--persistent", "--spool-limit", "2MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    wait_until("the end", || dir.join("exit.json").exists().then_some(())).await;
    let log = std::fs::metadata(dir.log_path())?;
    let (length, on_disk) = (usize::try_from(log.len()).unwrap_or_default(), log.blocks() * 512);
    assert_eq!(length, lines * LINE_LENGTH);
    assert!(dir.truncation_offsets().log > 0 && on_disk <= 2 * MIB as u64 + 512 * 1024, "{on_disk} bytes on disk");
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count).then_some(())).await;

    fake.state().rejects_logs = false;
    fake.wait_for_status("completed").await;
    let dropped = assert_equal_except_gaps(&fake.state(), lines);
    assert!(dropped > MIB, "{dropped} bytes");
    assert_eq!(fake.state().gaps, 0, "the gap must be announced");
    agent.kill().await
}

#[tokio::test]
async fn output_dropped_during_a_read_is_never_sent_as_zeros() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let lines = 64 * MIB / LINE_LENGTH;
    let host = TestHost::with_python(&chatty_script(lines, 0.002))?.flags(&["--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let dropped = assert_equal_except_gaps(&fake.state(), lines);
    println!("{dropped} bytes of {} were dropped in {} gaps", lines * LINE_LENGTH, fake.state().dropped.len());
    Ok(())
}

#[tokio::test]
async fn restarted_agent_continues_after_the_gap() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_logs = true;
    let lines = 12 * MIB / LINE_LENGTH;
    let host = TestHost::with_python(&chatty_script(lines, 0.0))?.flags(&["--persistent", "--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.kill().await?;
    let dir = host.attempt("j_1", 1);
    wait_until("the end", || dir.join("exit.json").exists().then_some(())).await;
    fake.state().rejects_logs = false;
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    assert!(dir.truncation_offsets().log > 0);
    let excess = assert_equal_except_gaps(&fake.state(), lines) as u64 - dir.truncation_offsets().log;
    assert!(excess < 1_024, "{excess} bytes more than necessary");
    agent.kill().await
}

#[tokio::test]
async fn end_is_reported_if_the_gap_is_rejected() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_logs = true;
    fake.state().rejects_gaps = true;
    let host = TestHost::with_python(&chatty_script(12 * MIB / LINE_LENGTH, 0.0))?.flags(&["--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    wait_until("the end", || dir.join("exit.json").exists().then_some(())).await;
    fake.state().rejects_logs = false;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("rejects a log with a gap"), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn end_is_reported_if_the_log_is_rejected() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().max_log_bytes = Some(100_000);
    let host = TestHost::with_python(&chatty_script(MIB / LINE_LENGTH, 0.0))?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("uploading its log") && output.contains("(422)"), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert!(fake.state().log.len() <= 100_000);
    Ok(())
}
