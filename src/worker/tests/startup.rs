//! The agent's command line and variables.

use std::io;

use serde_json::json;
use tokio::process::Command;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, binary};

async fn wait_for_registration(fake: &FakeOrchestrator) {
    fake.wait_until("a registration", |shared| (!shared.registrations.is_empty()).then_some(())).await;
}

#[tokio::test]
async fn empty_variable_counts_as_unset() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("true")?;
    for name in ["WORKER_PERSISTENT", "MAX_JOBS", "CA_FILE", "LOG_FORMAT", "KEEP_FREE", "JOB_MEMORY"] {
        host.variables.push((format!("SIMPLETUNER_{name}"), String::new()));
    }
    let agent = host.start(&fake)?;
    wait_for_registration(&fake).await;
    assert_eq!(fake.state().registrations[0]["persistent"], false);
    agent.kill().await
}

#[tokio::test]
async fn documented_command_works_with_only_the_agent_installed() -> io::Result<()> {
    let host = TestHost::with_script("true")?;
    let link = host.path().join("simpletuner");
    std::os::unix::fs::symlink(binary(), &link)?;
    for program in [binary(), &link] {
        let fake = FakeOrchestrator::start().await?;
        let mut command = Command::new(program);
        command.args(["worker", "--persistent"]);
        let agent = host.start_with(command, &fake.url)?;
        wait_for_registration(&fake).await;
        assert_eq!(fake.state().registrations[0]["persistent"], true, "{}", program.display());
        let job = if program == link { "j_2" } else { "j_1" };
        fake.offer(job, 1, &json!({"config.json": "{}"}));
        fake.wait_for_status("completed").await;
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn settings_without_effect_are_logged() -> io::Result<()> {
    for words in [
        "SIMPLETUNER_HEARTBEAT_TIMEOUT has no effect",
        "--name from-flag has no effect: the orchestrator knows this worker as test",
    ] {
        let fake = FakeOrchestrator::start().await?;
        let mut host = TestHost::with_script("true")?.flags(&["--name", "from-flag"]);
        host.variables.push(("SIMPLETUNER_HEARTBEAT_TIMEOUT".to_owned(), "60".to_owned()));
        host.start(&fake)?.wait_for_line(words).await?;
    }
    Ok(())
}

#[tokio::test]
async fn certificate_flags_warn_without_tls() -> io::Result<()> {
    for flags in [&[][..], &["--ssl-no-verify"]] {
        let fake = FakeOrchestrator::start().await?;
        assert!(fake.url.starts_with("http://"), "{}", fake.url);
        let host = TestHost::with_script("true")?.flags(flags);
        let agent = host.start(&fake)?;
        wait_for_registration(&fake).await;
        assert!(fake.state().registrations[0]["tls_verify"].is_null(), "{flags:?}: {}", fake.state().registrations[0]);
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn default_name_is_the_hostname() -> io::Result<()> {
    let hostname = gethostname::gethostname().to_string_lossy().into_owned();
    for (configured, reported) in [(None, hostname.as_str()), (Some("gpu-worker-1"), "gpu-worker-1")] {
        let fake = FakeOrchestrator::start().await?;
        let mut host = TestHost::with_script("true")?;
        host.variables.extend(configured.map(|name| ("SIMPLETUNER_WORKER_NAME".to_owned(), name.to_owned())));
        let agent = host.start(&fake)?;
        wait_for_registration(&fake).await;
        assert_eq!(fake.state().registrations[0]["name"], reported);
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn verbose_enables_debug_logging() -> io::Result<()> {
    for (flags, is_verbose) in [(&[][..], false), (&["-v"], true), (&["--verbose"], true)] {
        let fake = FakeOrchestrator::start().await?;
        let host = TestHost::with_script("true")?.flags(flags);
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        let (_, output) = agent.wait_for_exit().await?;
        assert_eq!(output.contains("the stream is open"), is_verbose, "{flags:?}: {output}");
    }
    Ok(())
}
