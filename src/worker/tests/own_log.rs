//! The agent's own log, where others can read it: whatever is said there, its token and its session are not.

use std::io;

use super::doctor::examined;
use super::fake::{Fake, SESSION, TOKEN};
use super::host::Host;

/// What the agent passes on of an answer that repeats what it was asked with.
async fn busy(fake: &Fake, host: &Host) -> io::Result<String> {
    let mut agent = host.start(fake)?;
    if !fake.shared().busy {
        fake.until("the registration", |shared| shared.registers.first().map(drop)).await;
        fake.shared().busy = true;
    }
    let line = agent.line("busy for").await?;
    agent.kill().await?;
    Ok(line)
}

#[tokio::test]
async fn an_answer_that_repeats_the_token_is_logged_without_it() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().busy = true;
    let host = Host::with_script("true")?.flags(&["--persistent"]);
    let line = busy(&fake, &host).await?;
    assert!(line.contains(&"*".repeat(TOKEN.len())) && !line.contains(TOKEN), "{line}");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_repeats_the_session_is_logged_without_it() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("true")?.flags(&["--persistent"]);
    let line = busy(&fake, &host).await?;
    assert!(line.contains(&"*".repeat(SESSION.len())) && !line.contains(SESSION), "{line}");
    Ok(())
}

#[tokio::test]
async fn the_doctor_says_it_neither() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().busy = true;
    let host = Host::with_script("true")?;
    let (_, asked) = examined(&host, &fake.url).await?;
    assert!(asked.contains(&"*".repeat(TOKEN.len())) && !asked.contains(TOKEN), "{asked}");
    Ok(())
}
