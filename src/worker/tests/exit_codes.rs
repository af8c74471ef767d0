//! How the process exits, and its last message.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};

fn config() -> serde_json::Value {
    json!({"config.json": "{}"})
}

#[tokio::test]
async fn rejected_token_exits_with_77() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().reject_token = true;
    for flags in [&[][..], &["--persistent"]] {
        let (code, output) = TestHost::with_script("")?.flags(flags).start(&fake)?.wait_for_exit().await?;
        assert_eq!(code, Some(77), "{output}");
        assert!(output.contains("Get a new token") && !output.contains("wt_test_token"), "{output}");
    }
    Ok(())
}

#[tokio::test]
async fn rotated_token_lets_the_running_job_finish() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host =
        TestHost::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done; echo done")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("a heartbeat", |shared| (shared.heartbeats.len() > heartbeat_count).then_some(())).await;
    fake.state().reject_token = true;
    fake.state().close_streams();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(77), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn missing_trainer_requeues_the_job_with_advice() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let agent = TestHost::with_trainer("/does/not/exist --flag")?;
    let agent = agent.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let report = fake.wait_for_status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("the program \"/does/not/exist\" does not exist") && error.contains("--trainer"), "{error}");
    assert_eq!(fake.reported_statuses(), ["starting", "requeue"]);
    Ok(())
}

#[tokio::test]
async fn only_an_ephemeral_worker_gives_up() -> io::Result<()> {
    let unreachable = "http://127.0.0.1:1";
    let (code, output) =
        TestHost::with_script("")?.flags(&["--give-up-after", "1"]).start_at(unreachable)?.wait_for_exit().await?;
    assert_eq!(code, Some(69), "{output}");
    assert!(
        output.contains("cannot reach the orchestrator at http://127.0.0.1:1/")
            && output.contains("check the URL and port"),
        "{output}"
    );
    let host = TestHost::with_script("")?.flags(&["--persistent", "--give-up-after", "1"]);
    let agent = host.start_at(unreachable)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    agent.signal(Signal::SIGINT)?;
    assert_eq!(agent.wait_for_exit().await?.0, Some(130));
    Ok(())
}

#[tokio::test]
async fn sigterm_leaves_a_persistent_workers_trainer_running() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(143), "{output}");
    assert_eq!(fake.state().disconnects[0]["left_running"], json!([{"job_id": "j_1", "attempt": 1}]));
    assert!(host.supervisor("j_1", 1).await.trainer.is_alive());
    Ok(())
}

#[tokio::test]
async fn sigterm_requeues_an_ephemeral_workers_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("trap 'echo saving; exit 0' TERM; while true; do sleep 0.05; done")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(143), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"]);
    assert!(fake.state().log.ends_with(b"saving\n"));
    assert_eq!(fake.state().disconnects[0]["left_running"], json!([]));
    Ok(())
}

#[tokio::test]
async fn work_directory_is_usable_and_exclusive() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let first = host.start(&fake)?;
    fake.wait_until("a registration", |shared| (!shared.registrations.is_empty()).then_some(())).await;
    let (code, output) = host.start(&fake)?.wait_for_exit().await?;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("another simpletuner-worker"), "{output}");
    first.kill().await?;
    let mut host = TestHost::with_script("")?;
    host.variables.push(("SIMPLETUNER_WORK_DIR".to_owned(), "/proc/none".to_owned()));
    let (code, output) = host.start(&fake)?.wait_for_exit().await?;
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("--work-dir"), "{output}");
    Ok(())
}

#[tokio::test]
async fn token_on_the_command_line_is_hidden_from_the_process_list() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host =
        TestHost::with_script("")?.flags(&["--persistent", "--worker-token", "wt_test_token", "--label", "team=nlp"]);
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_wrong".to_owned()));
    let agent = host.start(&fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(register["labels"], json!({"team": "nlp"}));
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    let line = wait_until("the process", || {
        let process = crate::worker::process::find_by_environment(&marker).into_iter().next()?;
        std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok()
    })
    .await;
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(line.contains("--persistent") && !line.contains("wt_test_token"), "{line}");
    agent.signal(Signal::SIGTERM)?;
    let (_, output) = agent.wait_for_exit().await?;
    assert!(output.contains("visible to other users"), "{output}");
    Ok(())
}

#[tokio::test]
async fn wrong_usage_exits_with_2() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    for flags in [
        &["--label", "x"][..],
        &["--orchestrator-url", "nonsense"],
        &["--no-such-flag"],
        &["--worker-token-file="],
        // Exceeds the clock.
        &["--stop-grace", "18446744073709551615"],
    ] {
        let (code, output) = TestHost::with_script("")?.flags(flags).start(&fake)?.wait_for_exit().await?;
        assert!(matches!(code, Some(2 | 78)), "{flags:?}: {code:?} {output}");
    }
    Ok(())
}

#[tokio::test]
async fn drain_exits_with_0_and_unknown_job_is_reported() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().running = vec![json!({"job_id": "j_9", "attempt": 4})];
    fake.state().drain = true;
    let host = TestHost::with_script("echo ran")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    let report = fake.wait_for_status("requeue").await;
    assert_eq!((&report["job_id"], &report["attempt"]), (&json!("j_9"), &json!(4)));
    fake.offer("j_1", 1, &config());
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 1).then_some(())).await;
    assert_eq!(fake.reported_statuses(), ["requeue"], "a draining worker accepts no new job");
    fake.state().drain = false;
    fake.wait_for_status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn finish_waits_for_jobs_and_second_signal_exits_immediately() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&[
        "--persistent",
        "--on-stop",
        "finish",
    ]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("further heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 1).then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    assert_eq!(agent.wait_for_exit().await?.0, Some(143));
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);

    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent", "--on-stop", "finish"]);
    let agent = host.start(&fake)?;
    fake.offer("j_2", 1, &config());
    let record = host.supervisor("j_2", 1).await;
    agent.signal(Signal::SIGTERM)?;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("further heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 1).then_some(())).await;
    agent.signal(Signal::SIGINT)?;
    assert_eq!(agent.wait_for_exit().await?.0, Some(130));
    assert!(record.trainer.is_alive());
    Ok(())
}

#[tokio::test]
async fn stopping_the_whole_service_requeues_the_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let record = host.supervisor("j_1", 1).await;
    record.trainer.signal(Signal::SIGTERM);
    record.supervisor.signal(Signal::SIGTERM);
    fake.wait_for_status("requeue").await;
    agent.kill().await
}
