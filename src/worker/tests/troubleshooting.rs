//! The agent's error messages equal the headings of the documentation, which users search for.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use super::tls::orchestrator;

fn ephemeral() -> io::Result<TestHost> {
    Ok(TestHost::with_script("")?.flags(&["--give-up-after", "1"]))
}

/// Without a terminal and without a chosen format, the log is JSON.
fn with_default_log(mut host: TestHost) -> TestHost {
    host.variables.push(("SIMPLETUNER_LOG_FORMAT".to_owned(), String::new()));
    host
}

/// Returns the entries that `grep` finds by this phrase.
fn grep(log: &str, phrase: &str) -> Vec<Value> {
    let found = log.lines().filter(|line| line.contains(phrase));
    found.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[tokio::test]
async fn phrases_are_found_in_a_log_without_a_terminal() -> io::Result<()> {
    let (rejecting, untrusted) = (FakeOrchestrator::start().await?, orchestrator("localhost").await?);
    rejecting.state().reject_token = true;
    for (url, phrase) in [
        ("http://127.0.0.1:1", "Connection refused"),
        (rejecting.url.as_str(), "Invalid token"),
        (untrusted.fake.url.as_str(), "SSL certificate verify failed"),
    ] {
        let (_, output) = with_default_log(ephemeral()?).start_at(url)?.wait_for_exit().await?;
        assert!(!grep(&output, phrase).is_empty(), "{phrase}: {output}");
    }

    let fake = FakeOrchestrator::start().await?;
    let host = with_default_log(TestHost::with_python("raise ValueError('no images')")?);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (_, output) = agent.wait_for_exit().await?;
    let found = grep(&output, "Process crash");
    assert!(found.iter().any(|entry| entry.to_string().contains("ValueError: no images")), "{output}");

    let fake = FakeOrchestrator::start().await?;
    let host = with_default_log(TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    fake.state().busy = true;
    fake.state().close_streams();
    let timeout_line = agent.wait_for_line("Heartbeat timeout (4s)").await?;
    assert_eq!(grep(&timeout_line, "Heartbeat timeout (4s)").len(), 1, "{timeout_line}");
    Ok(())
}

#[tokio::test]
async fn connection_refused() -> io::Result<()> {
    let (_, output) = ephemeral()?.start_at("http://127.0.0.1:1")?.wait_for_exit().await?;
    assert!(output.contains("Connection refused") && output.contains("--host 0.0.0.0"), "{output}");
    Ok(())
}

#[tokio::test]
async fn invalid_token() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().reject_token = true;
    let (code, output) = ephemeral()?.start(&fake)?.wait_for_exit().await?;
    assert!(code == Some(77) && output.contains("rotated"), "{output}");
    assert_eq!(output.matches("Invalid token").count(), 1, "{output}");
    // White space around a token is harmless, white space inside is an error.
    fake.state().reject_token = false;
    let mut host = TestHost::with_script("")?.flags(&["--max-idle", "1"]);
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), " wt_test_token\n".to_owned()));
    assert_eq!(host.start(&fake)?.wait_for_exit().await?.0, Some(0));
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_ test".to_owned()));
    let (code, output) = host.start(&fake)?.wait_for_exit().await?;
    assert!(code == Some(78) && output.contains("white space"), "{output}");
    Ok(())
}

#[tokio::test]
async fn ssl_certificate_verify_failed() -> io::Result<()> {
    let server = orchestrator("localhost").await?;
    let (_, output) = ephemeral()?.start(&server.fake)?.wait_for_exit().await?;
    assert!(output.contains("SSL certificate verify failed") && output.contains("--ssl-no-verify"), "{output}");
    Ok(())
}

#[tokio::test]
async fn heartbeat_timeout() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    // The orchestrator no longer responds, as after a network failure.
    fake.state().busy = true;
    fake.state().close_streams();
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let timeout_line = agent.wait_for_line("Heartbeat timeout (4s)").await?;
    assert!(timeout_line.contains("SIMPLETUNER_HEARTBEAT_TIMEOUT"), "{timeout_line}");
    assert!(trainer.is_alive(), "the running job continues");
    Ok(())
}

#[tokio::test]
async fn process_crash() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python("print('step 1', flush=True)\nraise ValueError('no images')")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (_, output) = agent.wait_for_exit().await?;
    assert!(output.contains("Process crash") && output.contains("ValueError: no images"), "{output}");
    assert!(output.contains("trainer.log"), "the log's path must be shown: {output}");
    let report = fake.wait_for_status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("ValueError: no images")), "{report}");
    wait_until("the complete traceback", || {
        String::from_utf8_lossy(&fake.state().log).contains("Traceback (most recent call last)").then_some(())
    })
    .await;
    Ok(())
}
