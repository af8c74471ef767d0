//! Notifications of a service manager, on a real socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::UnixDatagram;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use crate::worker::process;

/// A service manager that records notifications.
struct FakeServiceManager {
    path: PathBuf,
    received: Arc<Mutex<Vec<String>>>,
}

impl FakeServiceManager {
    fn start(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(length) = socket.recv(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                sink.lock().expect("no panic").extend(text.lines().map(str::to_owned));
            }
        });
        Ok(Self { path: path.to_owned(), received })
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().expect("no panic").clone()
    }

    /// Reads all pending notifications; returns the number of lines so far.
    async fn drain(&self) -> io::Result<usize> {
        let mark = format!("MARK={}", self.received().len());
        UnixDatagram::unbound()?.send_to(mark.as_bytes(), &self.path).await?;
        Ok(self.wait_for_line(&mark, 0).await)
    }

    /// Waits for such a line after the first `after` ones; returns the number of lines including it.
    async fn wait_for_line(&self, line: &str, after: usize) -> usize {
        let found = wait_until(line, || {
            let received = self.received();
            received.iter().skip(after).position(|message| message.starts_with(line)).map(|index| after + index + 1)
        });
        found.await
    }
}

/// A host whose service manager has a watchdog of one second.
fn host(script: &str) -> io::Result<(TestHost, FakeServiceManager)> {
    let mut host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let path = host.path().join("notify");
    let manager = FakeServiceManager::start(&path)?;
    host.variables.push(("NOTIFY_SOCKET".to_owned(), path.display().to_string()));
    host.variables.push(("WATCHDOG_USEC".to_owned(), "1000000".to_owned()));
    Ok((host, manager))
}

#[tokio::test]
async fn service_manager_gets_readiness_status_and_stopping() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (host, manager) = host("while [ ! -e ../control/go ]; do sleep 0.02; done")?;
    let agent = host.start(&fake)?;
    let line_count = manager.wait_for_line("READY=1", 0).await;
    let line_count = manager.wait_for_line("STATUS=connected, idle", line_count.saturating_sub(1)).await;
    assert!(!fake.state().registrations.is_empty(), "the agent must register before it is ready");
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let line_count = manager.wait_for_line("STATUS=connected, busy with j_1", line_count).await;
    // It is busy before its trainer's directories exist.
    host.supervisor("j_1", 1).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    let line_count = manager.wait_for_line("STATUS=connected, idle", line_count).await;
    agent.signal(Signal::SIGTERM)?;
    manager.wait_for_line("STOPPING=1", line_count).await;
    assert_eq!(agent.wait_for_exit().await?.0, Some(143));
    assert_eq!(manager.received().iter().filter(|line| *line == "READY=1").count(), 1);
    Ok(())
}

#[tokio::test]
async fn watchdog_is_notified_only_while_the_loop_runs() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (host, manager) = host("")?;
    let agent = host.start(&fake)?;
    let mut line_count = manager.wait_for_line("READY=1", 0).await;
    for _ in 0..3 {
        line_count = manager.wait_for_line("WATCHDOG=1", line_count).await;
    }
    agent.signal(Signal::SIGSTOP)?;
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    wait_until("a stopped process", || {
        let process = process::find_by_environment(&marker).into_iter().next()?;
        let line = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).ok()?;
        process::parse_stat(&line).filter(|stat| stat.state == 'T')
    })
    .await;
    let before = manager.drain().await?;
    // Longer than the watchdog's timeout.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(manager.received().len(), before, "a hung agent must send nothing");
    agent.signal(Signal::SIGCONT)?;
    manager.wait_for_line("WATCHDOG=1", before).await;
    Ok(())
}

#[tokio::test]
async fn unreachable_orchestrator_extends_the_start_timeout() -> io::Result<()> {
    let (host, manager) = host("")?;
    let _agent = host.start_at("http://127.0.0.1:1")?;
    let line_count = manager.wait_for_line("STATUS=not connected yet, trying since ", 0).await;
    manager.wait_for_line("EXTEND_TIMEOUT_USEC=", line_count).await;
    assert!(!manager.received().contains(&"READY=1".to_owned()));
    Ok(())
}

#[tokio::test]
async fn stopping_extends_the_timeout_by_the_grace_period() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (host, manager) = host("trap '' TERM; while true; do sleep 0.05; done")?;
    let host = host.flags(&["--on-stop", "requeue", "--stop-grace", "2"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let line_count = manager.wait_for_line("STOPPING=1", 0).await;
    let line_count = manager.wait_for_line("EXTEND_TIMEOUT_USEC=30000000", line_count).await;
    manager.wait_for_line("STATUS=connected, stopping, busy with j_1", line_count.saturating_sub(3)).await;
    assert_eq!(agent.wait_for_exit().await?.0, Some(143));
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"]);
    Ok(())
}
