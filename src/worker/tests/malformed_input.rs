//! Malformed input.

use std::io;

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};

#[tokio::test]
async fn non_object_configuration_fails_with_a_reason() -> io::Result<()> {
    for config in ["[1]", "\"text\"", "null", "5"] {
        let fake = FakeOrchestrator::start().await?;
        let host = TestHost::with_script("echo ran")?;
        let agent = host.start(&fake)?;
        fake.offer_with("j_1", 1, &json!({"config.json": config}), json!({"num_processes": 2}));
        let (code, output) = agent.wait_for_exit().await?;
        assert_eq!(code, Some(0), "{output}");
        let report = fake.wait_for_status("failed").await;
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains("config.json must contain one JSON object"), "{config}: {error}");
        assert!(!String::from_utf8_lossy(&fake.state().log).contains("ran"), "the trainer was started");
    }
    Ok(())
}

#[tokio::test]
async fn offer_without_a_directory_is_requeued_with_a_reason() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo ran")?.flags(&["--persistent"]);
    std::fs::create_dir_all(host.path().join("state/jobs"))?;
    std::fs::write(host.path().join("state/jobs/j_1"), "in the way")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let report = fake.wait_for_status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("directory")), "{report}");
    fake.offer("j_2", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn unreadable_exit_is_retried() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "while [ ! -e ../control/gate ]; do echo on; sleep 0.05; done";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    host.supervisor("j_1", 1).await;
    // Its reader gets an error that does not concern the trainer.
    let exit = host.attempt("j_1", 1).join("exit.json");
    std::fs::create_dir(&exit)?;
    let before = fake.state().log.len();
    fake.wait_until("more output", |shared| (shared.log.len() > before + 30).then_some(())).await;
    std::fs::remove_dir(&exit)?;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("gate"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses().last().map(String::as_str), Some("completed"));
    assert!(!fake.reported_statuses().iter().any(|status| status == "failed"), "{:?}", fake.reported_statuses());
    agent.kill().await
}

#[tokio::test]
async fn invalid_events_are_skipped_and_ids_never_become_paths() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.wait_until("a stream", |shared| (shared.streams > 0).then_some(())).await;
    for id in ["../../evil", "..", "", "a/b", "j_1\u{0}", "j 1", &"x".repeat(65)] {
        fake.offer_with(id, 1, &json!({"config.json": "{}"}), json!({}));
        let mut shared = fake.state();
        // Only the event has it: a response would be rejected as a whole.
        shared.offers.clear();
        shared.push(&json!({"type": "job_cancel", "job_id": id, "attempt": 1, "reason": "cancelled"}));
    }
    for event in [
        json!({"type": "reboot_the_moon", "job_id": 5}),
        json!({"type": "job_submit"}),
        json!({"type": "job_cancel", "job_id": "j_1", "attempt": -1, "reason": "cancelled"}),
        json!({"kind": "no type"}),
        json!([1, 2]),
        json!(null),
    ] {
        fake.state().push(&event);
    }
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    let jobs: Vec<_> =
        std::fs::read_dir(host.path().join("state/jobs"))?.flatten().map(|job| job.file_name()).collect();
    assert_eq!(jobs, ["j_1"]);
    assert!(!host.path().join("evil").exists() && !host.path().join("state/evil").exists());
    assert_eq!(fake.state().streams, 1, "the connection was not lost over it");
    // The offer may have come with a heartbeat, before the stream was read up to here.
    fake.state().push(&json!({"type": "job_cancel", "job_id": "j_1", "attempt": 1, "reason": "cancelled"}));
    fake.wait_for_status("cancelled").await;
    agent.signal(nix::sys::signal::Signal::SIGTERM)?;
    let (_, output) = agent.wait_for_exit().await?;
    assert_eq!(output.matches("cannot read an event").count(), 7 * 2 + 5, "{output}");
    Ok(())
}

/// The directory is not writable for a while, just when the exit is to be recorded.
#[tokio::test]
async fn exit_write_is_retried() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "while [ ! -e ../control/gate ]; do sleep 0.02; done; echo done";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir(dir.join("exit.json.new"))?;
    std::fs::write(dir.control_dir().join("gate"), "")?;
    let supervisor_log = || std::fs::read_to_string(dir.join("supervisor.log")).unwrap_or_default();
    wait_until("a log line", || supervisor_log().contains("cannot write exit.json").then_some(())).await;
    std::fs::remove_dir(dir.join("exit.json.new"))?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses().last().map(String::as_str), Some("completed"));
    agent.kill().await
}
