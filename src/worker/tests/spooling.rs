//! More output than there is room for, or than anybody takes.

use std::io;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Host, until};

const MIB: usize = 1 << 20;
/// Every line of [`talker`] is as long.
const LINE: usize = 64;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes so many numbered lines, and pauses for so many seconds after 64 KiB.
fn talker(lines: usize, pause: f32) -> String {
    format!(
        "import os, time\nfor i in range(0, {lines}, 1024):\n    os.write(1, b''.join(b'%015d %s\\n' % (n, b'x' * 47) for n in range(i, min(i + 1024, {lines}))))\n    time.sleep({pause})\n"
    )
}

/// All of the log is as the trainer wrote it, but for what was said to be dropped. How much that is.
fn assert_true_but_for_gaps(shared: &Shared, lines: usize) -> usize {
    assert_eq!(shared.log.len(), lines * LINE, "offsets are true");
    let mut whole = Vec::with_capacity(shared.log.len());
    for number in 0..lines {
        whole.extend_from_slice(format!("{number:015} {}\n", "x".repeat(47)).as_bytes());
    }
    for (from, to) in &shared.dropped {
        assert!(shared.log[*from..*to].iter().all(|byte| *byte == b'?'));
        whole[*from..*to].fill(b'?');
    }
    let wrong = shared.log.iter().zip(&whole).position(|(found, written)| found != written);
    assert_eq!(wrong, None, "gaps {:?}", shared.dropped);
    shared.dropped.iter().map(|(from, to)| to - from).sum()
}

#[tokio::test]
async fn what_nobody_takes_is_bounded_and_the_rest_is_sent_with_a_gap() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().no_logs = true;
    let lines = 24 * MIB / LINE;
    let host = Host::with_python(&talker(lines, 0.0))?.flags(&["--persistent", "--spool-limit", "2MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    until("the end", || dir.join("exit.json").exists().then_some(())).await;
    let log = std::fs::metadata(dir.log())?;
    let (length, on_disk) = (usize::try_from(log.len()).unwrap_or_default(), log.blocks() * 512);
    assert_eq!(length, lines * LINE);
    assert!(dir.floors().log > 0 && on_disk <= 2 * MIB as u64 + 512 * 1024, "{on_disk} bytes on disk");
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats).then_some(())).await;

    fake.shared().no_logs = false;
    fake.status("completed").await;
    let dropped = assert_true_but_for_gaps(&fake.shared(), lines);
    assert!(dropped > MIB, "{dropped} bytes");
    assert_eq!(fake.shared().gaps, 0, "the gap is announced, and not found out");
    agent.kill().await
}

#[tokio::test]
async fn what_is_given_up_while_it_is_read_is_never_sent_as_zeros() -> io::Result<()> {
    let fake = Fake::start().await?;
    let lines = 64 * MIB / LINE;
    let host = Host::with_python(&talker(lines, 0.002))?.flags(&["--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    let dropped = assert_true_but_for_gaps(&fake.shared(), lines);
    println!("{dropped} bytes of {} were dropped in {} gaps", lines * LINE, fake.shared().dropped.len());
    Ok(())
}

#[tokio::test]
async fn an_agent_that_comes_back_goes_on_behind_the_gap() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().no_logs = true;
    let lines = 12 * MIB / LINE;
    let host = Host::with_python(&talker(lines, 0.0))?.flags(&["--persistent", "--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.kill().await?;
    let dir = host.attempt("j_1", 1);
    until("the end", || dir.join("exit.json").exists().then_some(())).await;
    fake.shared().no_logs = false;
    let agent = host.start(&fake)?;
    fake.status("completed").await;
    assert!(dir.floors().log > 0);
    let beyond = assert_true_but_for_gaps(&fake.shared(), lines) as u64 - dir.floors().log;
    assert!(beyond < 1_024, "{beyond} bytes more than had to be");
    agent.kill().await
}

#[tokio::test]
async fn an_orchestrator_that_takes_no_gap_still_hears_of_the_end() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().no_logs = true;
    fake.shared().no_gaps = true;
    let host = Host::with_python(&talker(12 * MIB / LINE, 0.0))?.flags(&["--spool-limit", "1MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    until("the end", || dir.join("exit.json").exists().then_some(())).await;
    fake.shared().no_logs = false;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("takes no log with a gap"), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn an_orchestrator_that_takes_no_more_of_a_log_still_hears_of_the_end() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().most_log = Some(100_000);
    let host = Host::with_python(&talker(MIB / LINE, 0.0))?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("sending its log") && said.contains("(422)"), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert!(fake.shared().log.len() <= 100_000);
    Ok(())
}
