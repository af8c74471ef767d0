//! The agent as process 1 of a container.

use std::io;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::process::Command;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, binary, wait_until};
use crate::worker::process;

/// A container, as far as processes are concerned: its process 1 is the agent.
fn container() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"]).arg(binary());
    command
}

/// The processes with this host's work directory in their environment, by a part of their command line.
fn find_processes(host: &TestHost, text: &str) -> Vec<process::ProcId> {
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    let line = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let processes = process::find_by_environment(&marker).into_iter();
    processes.filter(|process| String::from_utf8_lossy(&line(process.pid)).contains(text)).collect()
}

/// Counts the zombies in the container.
fn zombies_below(pid: i32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let states = children
        .split_ascii_whitespace()
        .filter_map(|child| process::parse_stat(&std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?));
    states.filter(|stat| stat.state == 'Z').count()
}

#[tokio::test]
async fn stopped_container_requeues_its_job_and_leaves_no_zombie() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(
        "trap 'echo saving; exit 0' TERM; sh -c '(sleep 0.1 &)'; while true; do sleep 0.05; done",
    )?;
    let host = host.flags(&["--persistent", "--worker-token", "wt_test_token"]);
    let agent = host.start_with(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    // `unshare` itself, process 1, and the agent.
    let mut processes = wait_until("three processes", || {
        Some(find_processes(&host, "--persistent")).filter(|processes| processes.len() == 3)
    })
    .await;
    processes.sort_by_key(|process| (process.start, process.pid));
    let init = processes[1];
    // A killed supervisor leaves its trainer to process 1.
    let supervisors =
        wait_until("a supervisor", || Some(process::descendants(init.pid)).filter(|processes| processes.len() >= 3))
            .await;
    assert!(supervisors.len() >= 3, "the agent, a supervisor and a trainer: {supervisors:?}");
    init.signal(Signal::SIGTERM);
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(143), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"], "{output}");
    assert!(fake.state().log.ends_with(b"saving\n"));
    Ok(())
}

#[tokio::test]
async fn killed_agent_is_restarted_and_adopts() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("while [ ! -e ../control/gate ]; do sleep 0.05; done; echo through")?;
    let host = host.flags(&["--persistent"]);
    let _container = host.start_with(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    let mut processes = wait_until("three processes", || {
        Some(find_processes(&host, "--persistent")).filter(|processes| processes.len() == 3)
    })
    .await;
    processes.sort_by_key(|process| (process.start, process.pid));
    // The agent is the first child of process 1.
    let agent = process::descendants(processes[1].pid).into_iter().find(|found| processes.contains(found));
    agent.expect("the agent").signal(Signal::SIGKILL);
    fake.wait_until("another registration", |shared| shared.registrations.get(1).cloned()).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("gate"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert!(fake.state().log.ends_with(b"through\n"));
    Ok(())
}

#[tokio::test]
async fn orphans_are_reaped() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // A killed supervisor leaves all its processes.
    let host = TestHost::with_script("echo $$ >pid; sleep 1000")?.flags(&["--persistent"]);
    let _agent = host.start_with(container(), &fake.url)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    let mut processes = wait_until("three processes", || {
        Some(find_processes(&host, "--persistent")).filter(|processes| processes.len() == 3)
    })
    .await;
    processes.sort_by_key(|process| (process.start, process.pid));
    let init = processes[1];
    let supervisor = wait_until("the supervisor", || {
        process::descendants(init.pid).into_iter().find(|found| {
            let line = std::fs::read(format!("/proc/{}/cmdline", found.pid)).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("supervise")
        })
    })
    .await;
    supervisor.signal(Signal::SIGKILL);
    fake.wait_for_status("failed").await;
    wait_until("no zombie", || (zombies_below(init.pid) == 0).then_some(())).await;
    assert!(init.is_alive());
    Ok(())
}
