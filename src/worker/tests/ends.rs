//! How the process ends, and what it says then.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::fake::Fake;
use super::host::{Host, until};

fn config() -> serde_json::Value {
    json!({"config.json": "{}"})
}

#[tokio::test]
async fn a_refused_token_ends_it_with_77() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().refuse_token = true;
    for flags in [&[][..], &["--persistent"]] {
        let (code, said) = Host::with_script("")?.flags(flags).start(&fake)?.end().await?;
        assert_eq!(code, Some(77), "{said}");
        assert!(said.contains("Get a new token") && !said.contains("wt_test_token"), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_rotated_token_waits_for_the_running_job() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host =
        Host::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done; echo done")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    let beats = fake.shared().heartbeats.len();
    fake.until("a heartbeat", |shared| (shared.heartbeats.len() > beats).then_some(())).await;
    fake.shared().refuse_token = true;
    fake.shared().cut();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(77), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn a_missing_trainer_fails_the_job_with_advice() -> io::Result<()> {
    let fake = Fake::start().await?;
    let agent = Host::with_trainer("/does/not/exist --flag")?;
    let agent = agent.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    let report = fake.status("failed").await;
    let error = report["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("was not found") && error.contains("--trainer"), "{error}");
    assert_eq!(fake.words(), ["starting", "failed"]);
    assert!(String::from_utf8_lossy(&fake.shared().log).contains("was not found"));
    Ok(())
}

#[tokio::test]
async fn an_ephemeral_worker_gives_up_and_a_persistent_one_does_not() -> io::Result<()> {
    let nobody = "http://127.0.0.1:1";
    let (code, said) = Host::with_script("")?.flags(&["--give-up-after", "1"]).start_at(nobody)?.end().await?;
    assert_eq!(code, Some(69), "{said}");
    assert!(
        said.contains("cannot reach the orchestrator at http://127.0.0.1:1/") && said.contains("check URL and port"),
        "{said}"
    );
    let host = Host::with_script("")?.flags(&["--persistent", "--give-up-after", "1"]);
    let agent = host.start_at(nobody)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    agent.signal(Signal::SIGINT)?;
    assert_eq!(agent.end().await?.0, Some(130));
    Ok(())
}

#[tokio::test]
async fn sigterm_leaves_a_persistent_workers_trainer_running() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(fake.shared().disconnects[0]["left_running"], json!([{"job_id": "j_1", "attempt": 1}]));
    assert!(host.supervisor("j_1", 1).await.trainer.is_alive());
    Ok(())
}

#[tokio::test]
async fn sigterm_gives_an_ephemeral_workers_job_back() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("trap 'echo saving; exit 0' TERM; while true; do sleep 0.05; done")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "requeue"]);
    assert!(fake.shared().log.ends_with(b"saving\n"));
    assert_eq!(fake.shared().disconnects[0]["left_running"], json!([]));
    Ok(())
}

#[tokio::test]
async fn one_agent_per_work_directory_and_a_directory_that_can_be_used() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let first = host.start(&fake)?;
    fake.until("a registration", |shared| (!shared.registers.is_empty()).then_some(())).await;
    let (code, said) = host.start(&fake)?.end().await?;
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("another simpletuner-worker"), "{said}");
    first.kill().await?;
    let mut host = Host::with_script("")?;
    host.variables.push(("SIMPLETUNER_WORK_DIR".to_owned(), "/proc/none".to_owned()));
    let (code, said) = host.start(&fake)?.end().await?;
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("--work-dir"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_token_on_the_command_line_leaves_the_process_list() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host =
        Host::with_script("")?.flags(&["--persistent", "--worker-token", "wt_test_token", "--label", "team=nlp"]);
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_wrong".to_owned()));
    let agent = host.start(&fake)?;
    let register = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!(register["labels"], json!({"team": "nlp"}));
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    let line = until("the process", || {
        let process = crate::process::with_environment(&marker).into_iter().next()?;
        std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok()
    })
    .await;
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(line.contains("--persistent") && !line.contains("wt_test_token"), "{line}");
    agent.signal(Signal::SIGTERM)?;
    let (_, said) = agent.end().await?;
    assert!(said.contains("visible to other users"), "{said}");
    Ok(())
}

#[tokio::test]
async fn wrong_usage_is_2() -> io::Result<()> {
    let fake = Fake::start().await?;
    for flags in [
        &["--label", "x"][..],
        &["--orchestrator-url", "nonsense"],
        &["--no-such-flag"],
        &["--worker-token-file="],
        // No clock gets that far.
        &["--stop-grace", "18446744073709551615"],
    ] {
        let (code, said) = Host::with_script("")?.flags(flags).start(&fake)?.end().await?;
        assert!(matches!(code, Some(2 | 78)), "{flags:?}: {code:?} {said}");
    }
    Ok(())
}

#[tokio::test]
async fn drain_and_a_job_that_is_expected_but_unknown() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().run = vec![json!({"job_id": "j_9", "attempt": 4})];
    fake.shared().drain = true;
    let host = Host::with_script("echo ran")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    let report = fake.status("requeue").await;
    assert_eq!((&report["job_id"], &report["attempt"]), (&json!("j_9"), &json!(4)));
    fake.offer("j_1", 1, &config());
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats + 1).then_some(())).await;
    assert_eq!(fake.words(), ["requeue"], "a draining worker takes nothing new");
    fake.shared().drain = false;
    fake.status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn finishing_takes_its_time_and_a_second_signal_does_not() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&[
        "--persistent",
        "--on-stop",
        "finish",
    ]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats go on", |shared| (shared.heartbeats.len() > beats + 1).then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    assert_eq!(agent.end().await?.0, Some(143));
    assert_eq!(fake.words(), ["starting", "running", "completed"]);

    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent", "--on-stop", "finish"]);
    let agent = host.start(&fake)?;
    fake.offer("j_2", 1, &config());
    let second = host.supervisor("j_2", 1).await;
    agent.signal(Signal::SIGTERM)?;
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats go on", |shared| (shared.heartbeats.len() > beats + 1).then_some(())).await;
    agent.signal(Signal::SIGINT)?;
    assert_eq!(agent.end().await?.0, Some(130));
    assert!(second.trainer.is_alive());
    Ok(())
}

#[tokio::test]
async fn when_a_whole_service_is_ended_the_job_goes_back() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    let running = host.supervisor("j_1", 1).await;
    running.trainer.signal(Signal::SIGTERM);
    running.supervisor.signal(Signal::SIGTERM);
    fake.status("requeue").await;
    agent.kill().await
}
