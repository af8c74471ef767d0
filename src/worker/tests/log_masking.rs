//! The agent's own log never contains its token and session.

use std::io;

use super::doctor::run_doctor;
use super::fake_orchestrator::{FakeOrchestrator, SESSION, TOKEN};
use super::test_host::TestHost;

/// The agent logs a response that repeats its request.
async fn log_while_busy(fake: &FakeOrchestrator, host: &TestHost) -> io::Result<String> {
    let mut agent = host.start(fake)?;
    if !fake.state().busy {
        fake.wait_until("the registration", |shared| shared.registrations.first().map(drop)).await;
        fake.state().busy = true;
    }
    let line = agent.read_until_line("busy for").await?;
    agent.kill().await?;
    Ok(line)
}

#[tokio::test]
async fn response_repeating_the_token_is_masked_in_the_log() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().busy = true;
    let host = TestHost::with_script("true")?.flags(&["--persistent"]);
    let line = log_while_busy(&fake, &host).await?;
    assert!(line.contains(&"*".repeat(TOKEN.len())) && !line.contains(TOKEN), "{line}");
    Ok(())
}

#[tokio::test]
async fn response_repeating_the_session_is_masked_in_the_log() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("true")?.flags(&["--persistent"]);
    let line = log_while_busy(&fake, &host).await?;
    assert!(line.contains(&"*".repeat(SESSION.len())) && !line.contains(SESSION), "{line}");
    Ok(())
}

#[tokio::test]
async fn doctor_masks_the_token() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().busy = true;
    let host = TestHost::with_script("true")?;
    let (_, report) = run_doctor(&host, &fake.url).await?;
    assert!(report.contains(&"*".repeat(TOKEN.len())) && !report.contains(TOKEN), "{report}");
    Ok(())
}
