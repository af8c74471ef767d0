//! The agent dies, or is cut off, and nothing is lost.

use std::io;

use nix::sys::signal::Signal;
use serde_json::json;

use super::fake::Fake;
use super::host::{Host, until};

/// A few lines, then it waits for a file beside the bundle, then a few more.
const TWO_PARTS: &str = "for i in 1 2 3; do echo before $i; done\nwhile [ ! -e ../control/go ]; do sleep 0.02; done\nfor i in 1 2 3; do echo after $i; done";
const WHOLE: &str = "before 1\nbefore 2\nbefore 3\nafter 1\nafter 2\nafter 3\n";

fn config() -> serde_json::Value {
    json!({"config.json": "{}"})
}

#[tokio::test]
async fn an_agent_that_is_killed_is_followed_by_one_that_adopts() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    fake.until("some log", |shared| (!shared.log.is_empty()).then_some(())).await;
    agent.kill().await?;
    let supervisor = host.supervisor("j_1", 1).await;
    assert!(supervisor.supervisor.is_alive() && supervisor.trainer.is_alive());

    let agent = host.start(&fake)?;
    let second = fake.until("a second registration", |shared| shared.registers.get(1).cloned()).await;
    assert_eq!(second["attempts"], json!([{"job_id": "j_1", "attempt": 1}]));
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), WHOLE);
    agent.kill().await
}

#[tokio::test]
async fn what_ended_while_no_agent_was_there_is_reported_once() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.kill().await?;
    let dir = host.attempt("j_1", 1);
    std::fs::write(dir.control().join("go"), "")?;
    until("the end", || dir.join("exit.json").exists().then_some(())).await;

    let agent = host.start(&fake)?;
    fake.status("completed").await;
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), WHOLE);
    // A third agent knows that nothing is left to say, even if the orchestrator still expects the attempt.
    until("the end is written down", || dir.read::<crate::files::State>("state.json").ok()??.delivered.then_some(()))
        .await;
    agent.kill().await?;
    fake.shared().run = vec![json!({"job_id": "j_1", "attempt": 1})];
    let beats = fake.shared().heartbeats.len();
    let agent = host.start(&fake)?;
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats + 1).then_some(())).await;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn a_report_is_repeated_until_it_is_answered() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().failing_ends = 3;
    let host = Host::with_script("exit 3")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "failed"]);
    assert_eq!(fake.shared().failing_ends, 0);
    assert_eq!(fake.shared().statuses[2]["exit_code"], 3);
    Ok(())
}

#[tokio::test]
async fn a_killed_supervisor_fails_the_attempt_and_leaves_no_process() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("sleep 1000 & exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    let running = host.supervisor("j_1", 1).await;
    running.supervisor.signal(Signal::SIGKILL);
    let report = fake.status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("supervisor")), "{report}");
    assert!(!running.trainer.is_alive());
    let marker = format!("SIMPLETUNER_STOP_FILE={}", host.attempt("j_1", 1).stop_file().display());
    assert_eq!(crate::process::with_environment(&marker), []);
    agent.kill().await
}

#[tokio::test]
async fn a_restart_of_the_host_gives_the_job_back() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    let running = host.supervisor("j_1", 1).await;
    agent.kill().await?;
    running.supervisor.signal(Signal::SIGKILL);
    running.trainer.signal(Signal::SIGKILL);
    until("they are gone", || (!running.supervisor.is_alive() && !running.trainer.is_alive()).then_some(())).await;
    let dir = host.attempt("j_1", 1);
    let mut spec: crate::files::Spec = dir.read("spec.json")?.ok_or_else(|| io::Error::other("no spec"))?;
    "another boot".clone_into(&mut spec.host_boot);
    dir.write("spec.json", &spec)?;
    let agent = host.start(&fake)?;
    let report = fake.status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("restarted")), "{report}");
    agent.kill().await
}

#[tokio::test]
async fn a_lost_stream_comes_back_and_an_offer_is_not_taken_twice() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    fake.shared().cut();
    fake.until("a second stream", |shared| (shared.streams > 1).then_some(())).await;
    fake.offer("j_1", 1, &config());
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn an_attempt_that_is_somebody_elses_is_stopped_without_a_report() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("while true; do echo more; sleep 0.05; done")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    let running = host.supervisor("j_1", 1).await;
    fake.shared().stale = true;
    until("the trainer's end", || (!running.trainer.is_alive()).then_some(())).await;
    fake.shared().stale = false;
    fake.until("an idle worker", |shared| (shared.heartbeats.last()?["status"] == "idle").then_some(())).await;
    assert_eq!(fake.words(), ["starting", "running"]);
    agent.kill().await
}

#[tokio::test]
async fn a_proxy_that_holds_the_stream_back_is_polled_around() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().hold_streams = true;
    let host = Host::with_script("echo ran")?.flags(&["--persistent", "--stream-patience", "1"]);
    let agent = host.start(&fake)?;
    fake.until("a poll", |shared| (shared.polls > 0).then_some(())).await;
    fake.offer("j_1", 1, &config());
    fake.status("completed").await;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn no_byte_of_a_talkative_trainer_is_lost_when_agents_die() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done";
    let host = Host::with_script(script)?.flags(&["--persistent"]);
    for round in 0..4 {
        let before = fake.shared().log.len();
        let agent = host.start(&fake)?;
        if round == 0 {
            fake.offer("j_1", 1, &config());
        }
        let more = |shared: &mut super::fake::Shared| {
            let ended = shared.statuses.iter().any(|report| report["status"] == "completed");
            (shared.log.len() > before || ended).then_some(())
        };
        fake.until("more log", more).await;
        agent.kill().await?;
    }
    let agent = host.start(&fake)?;
    fake.status("completed").await;
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    let whole = (0..20_000).map(|number| format!("line {number}"));
    assert!(log.lines().eq(whole), "{} bytes", log.len());
    agent.kill().await
}

#[tokio::test]
async fn what_the_orchestrator_lost_of_a_log_is_sent_again() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the first part", |shared| shared.log.ends_with(b"before 3\n").then_some(())).await;
    // As after a restored backup.
    fake.shared().log.truncate(3);
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.status("completed").await;
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), WHOLE);
    assert_eq!(fake.shared().gaps, 1);
    agent.kill().await
}
