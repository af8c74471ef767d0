//! The agent is killed or disconnected, and nothing is lost.

use std::io;

use nix::sys::signal::Signal;
use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use crate::worker::files::{AttemptDir, AttemptExit, AttemptSpec, VERSION};

/// Prints a few lines, waits for a file beside the bundle, then prints a few more.
const TWO_PARTS: &str = "for i in 1 2 3; do echo before $i; done\nwhile [ ! -e ../control/go ]; do sleep 0.02; done\nfor i in 1 2 3; do echo after $i; done";
const FULL_LOG: &str = "before 1\nbefore 2\nbefore 3\nafter 1\nafter 2\nafter 3\n";

fn config() -> serde_json::Value {
    json!({"config.json": "{}"})
}

#[tokio::test]
async fn killed_agents_successor_adopts_its_jobs() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    fake.wait_until("some log", |shared| (!shared.log.is_empty()).then_some(())).await;
    agent.kill().await?;
    let supervisor = host.supervisor("j_1", 1).await;
    assert!(supervisor.supervisor.is_alive() && supervisor.trainer.is_alive());

    let agent = host.start(&fake)?;
    let second = fake.wait_until("a second registration", |shared| shared.registrations.get(1).cloned()).await;
    assert_eq!(second["attempts"], json!([{"job_id": "j_1", "attempt": 1}]));
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert_eq!(String::from_utf8_lossy(&fake.state().log), FULL_LOG);
    agent.kill().await
}

#[tokio::test]
async fn job_that_ended_without_an_agent_is_reported_once() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.kill().await?;
    let dir = host.attempt("j_1", 1);
    std::fs::write(dir.control_dir().join("go"), "")?;
    wait_until("the end", || dir.join("exit.json").exists().then_some(())).await;

    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    assert_eq!(String::from_utf8_lossy(&fake.state().log), FULL_LOG);
    // A third agent knows that nothing is left to report, even if the orchestrator still expects the attempt.
    wait_until("the recorded exit", || {
        dir.read_json::<crate::worker::files::AttemptState>("state.json").ok()??.delivered.then_some(())
    })
    .await;
    agent.kill().await?;
    fake.state().running = vec![json!({"job_id": "j_1", "attempt": 1})];
    let heartbeat_count = fake.state().heartbeats.len();
    let agent = host.start(&fake)?;
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 1).then_some(())).await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn report_is_repeated_until_acknowledged() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().failing_ends = 3;
    let host = TestHost::with_script("exit 3")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "failed"]);
    assert_eq!(fake.state().failing_ends, 0);
    assert_eq!(fake.state().statuses[2]["exit_code"], 3);
    Ok(())
}

#[tokio::test]
async fn killed_supervisor_fails_the_attempt_and_leaves_no_process() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("sleep 1000 & exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let record = host.supervisor("j_1", 1).await;
    record.supervisor.signal(Signal::SIGKILL);
    let report = fake.wait_for_status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("supervisor")), "{report}");
    assert!(!record.trainer.is_alive());
    let marker = format!("SIMPLETUNER_STOP_FILE={}", host.attempt("j_1", 1).stop_file().display());
    assert_eq!(crate::worker::process::find_by_environment(&marker), []);
    agent.kill().await
}

#[tokio::test]
async fn host_restart_requeues_the_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    crash_host(&fake, &host).await?;
    let agent = host.start(&fake)?;
    let report = fake.wait_for_status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("restarted")), "{report}");
    agent.kill().await
}

/// Returns the directory of an attempt after a crash of its host.
async fn crash_host(fake: &FakeOrchestrator, host: &TestHost) -> io::Result<AttemptDir> {
    let agent = host.start(fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let record = host.supervisor("j_1", 1).await;
    agent.kill().await?;
    record.supervisor.signal(Signal::SIGKILL);
    record.trainer.signal(Signal::SIGKILL);
    wait_until("the processes to exit", || (!record.supervisor.is_alive() && !record.trainer.is_alive()).then_some(()))
        .await;
    let dir = host.attempt("j_1", 1);
    let mut spec: AttemptSpec = dir.read_json("spec.json")?.ok_or_else(|| io::Error::other("no spec"))?;
    "another boot".clone_into(&mut spec.host_boot);
    dir.write_json("spec.json", &spec)?;
    Ok(dir)
}

/// The output of a trainer that ended just before the crash may be incomplete.
#[tokio::test]
async fn result_that_was_not_flushed_before_a_crash_is_not_reported() -> io::Result<()> {
    for (is_flushed, expected) in [(false, "requeue"), (true, "completed")] {
        let fake = FakeOrchestrator::start().await?;
        let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
        let dir = crash_host(&fake, &host).await?;
        let exit = AttemptExit { version: VERSION, code: Some(0), is_flushed, ..AttemptExit::default() };
        dir.write_json("exit.json", &exit)?;
        let agent = host.start(&fake)?;
        fake.wait_for_status(expected).await;
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn result_is_flushed_after_the_end_also_without_an_agent() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // The shortest run whose result is flushed.
    let host = TestHost::with_script("exec sleep 1")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.kill().await?;
    let dir = host.attempt("j_1", 1);
    let is_flushed = || dir.read_json::<AttemptExit>("exit.json").ok().flatten().filter(|exit| exit.is_flushed);
    assert_eq!(wait_until("a flushed result", is_flushed).await.code, Some(0));
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    agent.kill().await
}

/// Without its secrets, nothing of an attempt can be sent.
#[tokio::test]
async fn attempt_whose_files_a_crash_has_damaged_is_given_up() -> io::Result<()> {
    for (name, contents) in
        [("secrets.json", ""), ("secrets.json", "{\"job"), ("spec.json", "\0\0"), ("spec.json", "{")]
    {
        let fake = FakeOrchestrator::start().await?;
        let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
        let dir = crash_host(&fake, &host).await?;
        std::fs::write(dir.join(name), contents)?;
        let agent = host.start(&fake)?;
        let claims = |registrations: &[serde_json::Value]| registrations.get(1).map(|body| body["attempts"].clone());
        let claimed = fake.wait_until("a registration", |shared| claims(&shared.registrations)).await;
        assert_eq!((claimed, dir.path().exists()), (json!([]), false), "{name}: {contents:?}");
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn lost_stream_reconnects_and_offer_is_accepted_once() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    fake.state().close_streams();
    fake.wait_until("a second stream", |shared| (shared.streams > 1).then_some(())).await;
    fake.offer("j_1", 1, &config());
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn superseded_attempt_is_stopped_without_a_report() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("while true; do echo more; sleep 0.05; done")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let record = host.supervisor("j_1", 1).await;
    fake.state().rejects_reports = true;
    wait_until("the trainer's end", || (!record.trainer.is_alive()).then_some(())).await;
    fake.state().rejects_reports = false;
    fake.wait_until("an idle worker", |shared| (shared.heartbeats.last()?["status"] == "idle").then_some(())).await;
    assert_eq!(fake.reported_statuses(), ["starting", "running"]);
    agent.kill().await
}

#[tokio::test]
async fn buffered_stream_is_replaced_by_polling() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().hold_streams = true;
    let host = TestHost::with_script("echo ran")?.flags(&["--persistent", "--stream-patience", "1"]);
    let agent = host.start(&fake)?;
    fake.wait_until("a poll", |shared| (shared.polls > 0).then_some(())).await;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    agent.kill().await
}

#[tokio::test]
async fn no_output_is_lost_when_agents_are_killed() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    for round in 0..4 {
        let before = fake.state().log.len();
        let agent = host.start(&fake)?;
        if round == 0 {
            fake.offer("j_1", 1, &config());
        }
        let has_more_log = |shared: &mut super::fake_orchestrator::FakeState| {
            let ended = shared.statuses.iter().any(|report| report["status"] == "completed");
            (shared.log.len() > before || ended).then_some(())
        };
        fake.wait_until("more log", has_more_log).await;
        agent.kill().await?;
    }
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    let expected = (0..20_000).map(|number| format!("line {number}"));
    assert!(log.lines().eq(expected), "{} bytes", log.len());
    agent.kill().await
}

#[tokio::test]
async fn log_bytes_lost_by_the_orchestrator_are_sent_again() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(TWO_PARTS)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the first part", |shared| shared.log.ends_with(b"before 3\n").then_some(())).await;
    // As after a restored backup.
    fake.state().log.truncate(3);
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(String::from_utf8_lossy(&fake.state().log), FULL_LOG);
    assert_eq!(fake.state().gaps, 1);
    agent.kill().await
}
