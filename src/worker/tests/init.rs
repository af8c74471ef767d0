//! The agent as process 1 of a container.

use std::io;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::process::Command;

use super::fake::Fake;
use super::host::{Host, binary, until};
use crate::process;

/// A container, as far as processes go: its process 1 is the agent.
fn container() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"]).arg(binary());
    command
}

/// The processes that hold this host's work directory in their environment, by a part of their command line.
fn found(host: &Host, part: &str) -> Vec<process::ProcId> {
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    let line = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let all = process::with_environment(&marker).into_iter();
    all.filter(|found| String::from_utf8_lossy(&line(found.pid)).contains(part)).collect()
}

/// The processes in the container that are over and that nobody has taken note of.
fn zombies_below(pid: i32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let states = children
        .split_ascii_whitespace()
        .filter_map(|child| process::parse_stat(&std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?));
    states.filter(|stat| stat.state == 'Z').count()
}

#[tokio::test]
async fn a_stopped_container_gives_its_job_back_and_leaves_no_zombie() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host =
        Host::with_script("trap 'echo saving; exit 0' TERM; sh -c '(sleep 0.1 &)'; while true; do sleep 0.05; done")?;
    let host = host.flags(&["--persistent", "--worker-token", "wt_test_token"]);
    let agent = host.start_by(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    // `unshare` itself, process 1, and the agent proper.
    let mut all = until("three processes", || Some(found(&host, "--persistent")).filter(|all| all.len() == 3)).await;
    all.sort_by_key(|process| (process.start, process.pid));
    let first = all[1];
    // A supervisor that is killed leaves its trainer to process 1.
    let supervisors =
        until("a supervisor", || Some(process::descendants(first.pid)).filter(|all| all.len() >= 3)).await;
    assert!(supervisors.len() >= 3, "the agent, a supervisor and a trainer: {supervisors:?}");
    first.signal(Signal::SIGTERM);
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "requeue"], "{said}");
    assert!(fake.shared().log.ends_with(b"saving\n"));
    Ok(())
}

#[tokio::test]
async fn an_agent_that_is_killed_is_followed_by_one_that_adopts() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("while [ ! -e ../control/gate ]; do sleep 0.05; done; echo through")?;
    let host = host.flags(&["--persistent"]);
    let _container = host.start_by(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    let mut all = until("three processes", || Some(found(&host, "--persistent")).filter(|all| all.len() == 3)).await;
    all.sort_by_key(|process| (process.start, process.pid));
    // The agent proper is the first child of process 1.
    let agent = process::descendants(all[1].pid).into_iter().find(|found| all.contains(found));
    agent.expect("the agent").signal(Signal::SIGKILL);
    fake.until("another registration", |shared| shared.registers.get(1).cloned()).await;
    std::fs::write(host.attempt("j_1", 1).control().join("gate"), "")?;
    fake.status("completed").await;
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert!(fake.shared().log.ends_with(b"through\n"));
    Ok(())
}

#[tokio::test]
async fn orphans_are_reaped() -> io::Result<()> {
    let fake = Fake::start().await?;
    // What leaves the supervisor's care is what was started beside it; a killed supervisor leaves everything.
    let host = Host::with_script("echo $$ >pid; sleep 1000")?.flags(&["--persistent"]);
    let _agent = host.start_by(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    let mut all = until("three processes", || Some(found(&host, "--persistent")).filter(|all| all.len() == 3)).await;
    all.sort_by_key(|process| (process.start, process.pid));
    let first = all[1];
    let supervisor = until("the supervisor", || {
        process::descendants(first.pid).into_iter().find(|found| {
            let line = std::fs::read(format!("/proc/{}/cmdline", found.pid)).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("supervise")
        })
    })
    .await;
    supervisor.signal(Signal::SIGKILL);
    fake.status("failed").await;
    until("no zombie", || (zombies_below(first.pid) == 0).then_some(())).await;
    assert!(first.is_alive());
    Ok(())
}
