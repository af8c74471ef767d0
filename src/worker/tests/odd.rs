//! What nobody should send.

use std::io;

use serde_json::json;

use super::fake::Fake;
use super::host::{Host, until};

#[tokio::test]
async fn a_configuration_that_is_no_object_fails_with_a_reason() -> io::Result<()> {
    for config in ["[1]", "\"text\"", "null", "5"] {
        let fake = Fake::start().await?;
        let host = Host::with_script("echo ran")?;
        let agent = host.start(&fake)?;
        fake.offer_with("j_1", 1, &json!({"config.json": config}), json!({"num_processes": 2}));
        let (code, said) = agent.end().await?;
        assert_eq!(code, Some(0), "{said}");
        let report = fake.status("failed").await;
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains("config.json must hold one JSON object"), "{config}: {error}");
        assert!(!String::from_utf8_lossy(&fake.shared().log).contains("ran"), "the trainer was begun");
    }
    Ok(())
}

#[tokio::test]
async fn an_offer_that_there_is_no_directory_for_is_given_back_with_the_reason() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("echo ran")?.flags(&["--persistent"]);
    std::fs::create_dir_all(host.path().join("state/jobs"))?;
    std::fs::write(host.path().join("state/jobs/j_1"), "in the way")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let report = fake.status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("directory")), "{report}");
    fake.offer("j_2", 1, &json!({"config.json": "{}"}));
    fake.status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn an_end_that_cannot_be_read_now_is_looked_for_again() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "while [ ! -e ../control/gate ]; do echo on; sleep 0.05; done";
    let host = Host::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    host.supervisor("j_1", 1).await;
    // Whoever reads it gets an error that says nothing of the trainer.
    let exit = host.attempt("j_1", 1).join("exit.json");
    std::fs::create_dir(&exit)?;
    let before = fake.shared().log.len();
    fake.until("the log to go on", |shared| (shared.log.len() > before + 30).then_some(())).await;
    std::fs::remove_dir(&exit)?;
    std::fs::write(host.attempt("j_1", 1).control().join("gate"), "")?;
    fake.status("completed").await;
    assert_eq!(fake.words().last().map(String::as_str), Some("completed"));
    assert!(!fake.words().iter().any(|word| word == "failed"), "{:?}", fake.words());
    agent.kill().await
}

#[tokio::test]
async fn events_that_make_no_sense_are_passed_over_and_ids_never_become_paths() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.until("a stream", |shared| (shared.streams > 0).then_some(())).await;
    for id in ["../../evil", "..", "", "a/b", "j_1\u{0}", "j 1", &"x".repeat(65)] {
        fake.offer_with(id, 1, &json!({"config.json": "{}"}), json!({}));
        let mut shared = fake.shared();
        // Only the event has it: an answer is refused as a whole.
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
        fake.shared().push(&event);
    }
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    let jobs: Vec<_> =
        std::fs::read_dir(host.path().join("state/jobs"))?.flatten().map(|job| job.file_name()).collect();
    assert_eq!(jobs, ["j_1"]);
    assert!(!host.path().join("evil").exists() && !host.path().join("state/evil").exists());
    assert_eq!(fake.shared().streams, 1, "the connection was not lost over it");
    agent.signal(nix::sys::signal::Signal::SIGTERM)?;
    let (_, said) = agent.end().await?;
    assert_eq!(said.matches("an event cannot be read").count(), 7 * 2 + 5, "{said}");
    Ok(())
}

/// Nothing can be written there for a while, in the very moment when the end is to be.
#[tokio::test]
async fn an_end_that_cannot_be_written_down_at_once_is_written_later() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "while [ ! -e ../control/gate ]; do sleep 0.02; done; echo done";
    let host = Host::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir(dir.join("exit.json.new"))?;
    std::fs::write(dir.control().join("gate"), "")?;
    let said = || std::fs::read_to_string(dir.join("supervisor.log")).unwrap_or_default();
    until("a word of it", || said().contains("exit.json cannot be written").then_some(())).await;
    std::fs::remove_dir(dir.join("exit.json.new"))?;
    fake.status("completed").await;
    assert_eq!(fake.words().last().map(String::as_str), Some("completed"));
    agent.kill().await
}
