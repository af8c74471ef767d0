//! An agent that lost its orchestrator reconnects as soon as it responds.

use std::io;

use super::fake_orchestrator::{FakeOrchestrator, FakeState, LateConflict};
use super::test_host::TestHost;

/// How many heartbeats may be sent before the next registration.
const MAX_HEARTBEATS: usize = 3;

/// Disconnects the agent and rejects it for a while. Returns how often it registered afterwards, and the heartbeats
/// before that.
async fn registered_again(is_unknown: bool) -> io::Result<(usize, usize)> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exit 0")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.wait_until("a stream", |shared| (shared.streams == 1).then_some(())).await;
    {
        let mut shared = fake.state();
        shared.rejects_registrations = true;
        shared.is_unknown = is_unknown;
        shared.close_streams();
    }
    // By now the agent would wait for 16 s or longer.
    let rejected = |shared: &mut FakeState| shared.rejected.iter().filter(|route| **route == "register").count() >= 5;
    fake.wait_until("rejected registrations", |shared| rejected(shared).then_some(())).await;
    let heartbeat_count = |shared: &FakeState| {
        shared.heartbeats.len() + shared.rejected.iter().filter(|route| **route == "heartbeat").count()
    };
    let before = {
        let mut shared = fake.state();
        shared.rejects_registrations = false;
        heartbeat_count(&shared)
    };
    let heartbeats_before_registration = fake
        .wait_until("a registration", |shared| {
            (shared.registrations.len() > 1).then(|| heartbeat_count(shared) - before)
        })
        .await;
    let accepted = fake.state().heartbeats.len();
    fake.wait_until("more heartbeats", |shared| (shared.heartbeats.len() > accepted + 3).then_some(())).await;
    agent.kill().await?;
    let registrations = fake.state().registrations.len() - 1;
    Ok((registrations, heartbeats_before_registration))
}

#[tokio::test]
async fn unknown_agent_registers_once_and_soon() -> io::Result<()> {
    let (registrations, heartbeats) = registered_again(true).await?;
    assert_eq!(registrations, 1);
    assert!(heartbeats <= MAX_HEARTBEATS, "it sent {heartbeats} heartbeats before it registered");
    Ok(())
}

#[tokio::test]
async fn agent_with_answered_heartbeats_registers_soon() -> io::Result<()> {
    let (registrations, heartbeats) = registered_again(false).await?;
    assert_eq!(registrations, 1);
    assert!(heartbeats <= MAX_HEARTBEATS, "it sent {heartbeats} heartbeats before it registered");
    Ok(())
}

#[tokio::test]
async fn heartbeat_rejected_after_a_registration_needs_no_other() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exit 0")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.wait_until("a stream", |shared| (shared.streams == 1).then_some(())).await;
    fake.state().late_conflict = LateConflict::Requested;
    fake.wait_until("a held heartbeat", |shared| (shared.late_conflict == LateConflict::Waiting).then_some(())).await;
    fake.state().close_streams();
    fake.wait_until("its rejection", |shared| (!shared.rejected.is_empty()).then_some(())).await;
    let accepted = fake.state().heartbeats.len();
    fake.wait_until("more heartbeats", |shared| (shared.heartbeats.len() > accepted + 3).then_some(())).await;
    agent.kill().await?;
    assert_eq!(fake.state().registrations.len(), 2, "one at the start, one for the closed stream");
    Ok(())
}
