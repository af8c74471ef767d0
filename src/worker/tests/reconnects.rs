//! An agent that lost its orchestrator is back as soon as that answers.

use std::io;

use super::fake::{Fake, Shared};
use super::host::Host;

/// More than the agent beats before it registers again.
const SOON: usize = 3;

/// Cuts the agent off, lets it be refused, and answers with how often it registered once it could, and how often it beat
/// before that.
async fn registered_again(is_unknown: bool) -> io::Result<(usize, usize)> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exit 0")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.until("a stream", |shared| (shared.streams == 1).then_some(())).await;
    {
        let mut shared = fake.shared();
        shared.no_registrations = true;
        shared.is_unknown = is_unknown;
        shared.cut();
    }
    // By now the agent would wait for 16 s or longer.
    let refused = |shared: &mut Shared| shared.refused.iter().filter(|one| **one == "register").count() >= 5;
    fake.until("refused registrations", |shared| refused(shared).then_some(())).await;
    let beats =
        |shared: &Shared| shared.heartbeats.len() + shared.refused.iter().filter(|one| **one == "heartbeat").count();
    let before = {
        let mut shared = fake.shared();
        shared.no_registrations = false;
        beats(&shared)
    };
    let meanwhile =
        fake.until("a registration", |shared| (shared.registers.len() > 1).then(|| beats(shared) - before)).await;
    let accepted = fake.shared().heartbeats.len();
    fake.until("more heartbeats", |shared| (shared.heartbeats.len() > accepted + 3).then_some(())).await;
    agent.kill().await?;
    let registrations = fake.shared().registers.len() - 1;
    Ok((registrations, meanwhile))
}

#[tokio::test]
async fn an_agent_that_is_not_known_registers_once_and_soon() -> io::Result<()> {
    let (registrations, beats) = registered_again(true).await?;
    assert_eq!(registrations, 1);
    assert!(beats <= SOON, "it beat {beats} times before it registered");
    Ok(())
}

#[tokio::test]
async fn an_agent_whose_heartbeats_are_answered_registers_soon() -> io::Result<()> {
    let (registrations, beats) = registered_again(false).await?;
    assert_eq!(registrations, 1);
    assert!(beats <= SOON, "it beat {beats} times before it registered");
    Ok(())
}
