//! What a service manager is told, on a socket like its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::UnixDatagram;

use super::fake::Fake;
use super::host::{Host, until};
use crate::process;

/// A service manager that listens.
struct Manager {
    path: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Manager {
    fn start(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listening = Arc::clone(&heard);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(length) = socket.recv(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                listening.lock().expect("no panic").extend(text.lines().map(str::to_owned));
            }
        });
        Ok(Self { path: path.to_owned(), heard })
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }

    /// Waits until everything that was said so far is heard; how many lines that is.
    async fn all(&self) -> io::Result<usize> {
        let mark = format!("MARK={}", self.heard().len());
        UnixDatagram::unbound()?.send_to(mark.as_bytes(), &self.path).await?;
        Ok(self.until(&mark, 0).await)
    }

    /// Waits for such a line after the first `after` ones; how many there are with it.
    async fn until(&self, line: &str, after: usize) -> usize {
        let found = until(line, || {
            let heard = self.heard();
            heard.iter().skip(after).position(|said| said.starts_with(line)).map(|at| after + at + 1)
        });
        found.await
    }
}

/// A host whose service manager wants to hear something each second.
fn host(script: &str) -> io::Result<(Host, Manager)> {
    let mut host = Host::with_script(script)?.flags(&["--persistent"]);
    let path = host.path().join("notify");
    let manager = Manager::start(&path)?;
    host.variables.push(("NOTIFY_SOCKET".to_owned(), path.display().to_string()));
    host.variables.push(("WATCHDOG_USEC".to_owned(), "1000000".to_owned()));
    Ok((host, manager))
}

#[tokio::test]
async fn it_hears_of_readiness_jobs_and_the_end() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (host, manager) = host("while [ ! -e ../control/go ]; do sleep 0.02; done")?;
    let agent = host.start(&fake)?;
    let seen = manager.until("READY=1", 0).await;
    let seen = manager.until("STATUS=connected, idle", seen.saturating_sub(1)).await;
    assert!(!fake.shared().registers.is_empty(), "it was registered before it was ready");
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let seen = manager.until("STATUS=connected, busy with j_1", seen).await;
    // It is busy before its trainer's directories are there.
    host.supervisor("j_1", 1).await;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    let seen = manager.until("STATUS=connected, idle", seen).await;
    agent.signal(Signal::SIGTERM)?;
    manager.until("STOPPING=1", seen).await;
    assert_eq!(agent.end().await?.0, Some(143));
    assert_eq!(manager.heard().iter().filter(|line| *line == "READY=1").count(), 1);
    Ok(())
}

#[tokio::test]
async fn while_the_loop_turns_the_watchdog_is_fed_and_no_longer() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (host, manager) = host("")?;
    let agent = host.start(&fake)?;
    let mut seen = manager.until("READY=1", 0).await;
    for _ in 0..3 {
        seen = manager.until("WATCHDOG=1", seen).await;
    }
    agent.signal(Signal::SIGSTOP)?;
    let marker = format!("SIMPLETUNER_WORK_DIR={}", host.path().join("state").display());
    until("a stopped process", || {
        let process = process::with_environment(&marker).into_iter().next()?;
        let line = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).ok()?;
        process::parse_stat(&line).filter(|stat| stat.state == 'T')
    })
    .await;
    let before = manager.all().await?;
    // Longer than the manager would wait.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(manager.heard().len(), before, "who hangs says nothing");
    agent.signal(Signal::SIGCONT)?;
    manager.until("WATCHDOG=1", before).await;
    Ok(())
}

#[tokio::test]
async fn an_orchestrator_that_is_away_is_no_reason_to_be_killed() -> io::Result<()> {
    let (host, manager) = host("")?;
    let _agent = host.start_at("http://127.0.0.1:1")?;
    let seen = manager.until("STATUS=not connected yet, trying since ", 0).await;
    manager.until("EXTEND_TIMEOUT_USEC=", seen).await;
    assert!(!manager.heard().contains(&"READY=1".to_owned()));
    Ok(())
}

#[tokio::test]
async fn the_end_takes_as_long_as_a_trainers_grace() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (host, manager) = host("trap '' TERM; while true; do sleep 0.05; done")?;
    let host = host.flags(&["--on-stop", "requeue", "--stop-grace", "2"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    let seen = manager.until("STOPPING=1", 0).await;
    let seen = manager.until("EXTEND_TIMEOUT_USEC=30000000", seen).await;
    manager.until("STATUS=connected, ending, busy with j_1", seen.saturating_sub(3)).await;
    assert_eq!(agent.end().await?.0, Some(143));
    assert_eq!(fake.words(), ["starting", "running", "requeue"]);
    Ok(())
}
