//! Agent and supervisor are killed at the same time, as by `pkill`, and no agent starts again.

use std::io;

use nix::sys::signal::Signal;
use serde_json::json;

use super::{config, sandboxed_host};
use crate::worker::tests::fake_orchestrator::FakeOrchestrator;
use crate::worker::tests::test_host::wait_until;

const TRAINER: &str =
    "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\nprint('on', flush=True)\ntime.sleep(1000)\n";

async fn kill_agent_and_supervisor(level: &str, exclusive: bool) -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().offer_extra = json!({"exclusive": exclusive});
    // The lease of an exclusive job must not end first, however slow the machine is.
    fake.state().heartbeat_timeout = Some(3_600);
    let host = sandboxed_host(level, TRAINER)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("its output", |shared| shared.log.starts_with(b"on").then_some(())).await;
    let record = host.supervisor("j_1", 1).await;
    agent.signal(Signal::SIGSTOP)?; // it cannot react to the end of the supervisor
    record.supervisor.signal(Signal::SIGKILL);
    agent.kill().await?;
    wait_until("the end of the trainer", || (!record.trainer.is_alive()).then_some(())).await;
    Ok(())
}

#[tokio::test]
async fn confined_trainer_ends_with_its_supervisor() -> io::Result<()> {
    for level in ["files", "full"] {
        kill_agent_and_supervisor(level, false).await?;
    }
    Ok(())
}

#[tokio::test]
async fn exclusive_trainer_ends_with_its_supervisor_also_without_a_sandbox() -> io::Result<()> {
    kill_agent_and_supervisor("none", true).await
}
