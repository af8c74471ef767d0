//! How the agent takes its command line and its variables.

use std::io;

use tokio::process::Command;

use super::fake::Fake;
use super::host::{Host, binary};

async fn registered(fake: &Fake) {
    fake.until("a registration", |shared| (!shared.registers.is_empty()).then_some(())).await;
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("true")?;
    for name in ["WORKER_PERSISTENT", "MAX_JOBS", "CA_FILE", "LOG_FORMAT", "KEEP_FREE", "JOB_MEMORY"] {
        host.variables.push((format!("SIMPLETUNER_{name}"), String::new()));
    }
    let agent = host.start(&fake)?;
    registered(&fake).await;
    assert_eq!(fake.shared().registers[0]["persistent"], false);
    agent.kill().await
}

#[tokio::test]
async fn the_documents_command_works_where_the_agent_is_all_there_is() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("true")?;
    let mut command = Command::new(binary());
    command.args(["worker", "--persistent"]);
    let agent = host.start_by(command, &fake.url)?;
    registered(&fake).await;
    assert_eq!(fake.shared().registers[0]["persistent"], true);
    agent.kill().await
}

#[tokio::test]
async fn what_changes_nothing_is_said() -> io::Result<()> {
    for words in [
        "SIMPLETUNER_HEARTBEAT_TIMEOUT changes nothing here",
        "--name from-flag changes nothing: the orchestrator knows this worker as test",
    ] {
        let fake = Fake::start().await?;
        let mut host = Host::with_script("true")?.flags(&["--name", "from-flag"]);
        host.variables.push(("SIMPLETUNER_HEARTBEAT_TIMEOUT".to_owned(), "60".to_owned()));
        host.start(&fake)?.says(words).await?;
    }
    Ok(())
}
