//! The supervisor as the agent that starts it sees it: it prepares everything, waits for a permit, and reports when it
//! has recorded the trainer.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use crate::files::{AttemptDir, open_private};

/// How often its files are looked at once it can report nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Without a permit it exits when this is dropped.
pub struct SupervisorProcess {
    child: Child,
    permit: Option<ChildStdin>,
    /// It writes when it has recorded the trainer. Closed once it has exited.
    record: Option<ChildStdout>,
}

impl SupervisorProcess {
    /// Starts the supervisor of an attempt with the trainer's environment.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(dir: &AttemptDir, environment: BTreeMap<String, String>) -> io::Result<Self> {
        let log = open_private(&dir.join("supervisor.log"))?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["supervise", "--wait-for-permit"])
            .arg(dir.path())
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let (permit, record) = (child.stdin.take(), child.stdout.take());
        Ok(Self { child, permit, record })
    }

    /// Permits it to start the trainer. If it has exited, its exit status tells why.
    pub async fn permit_start(&mut self) {
        if let Some(mut permit) = self.permit.take() {
            let _ = permit.write_all(b"\n").await;
        }
    }

    /// Its exit status, if it has exited.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it may have recorded the trainer or has exited.
    pub async fn wait_for_record(&mut self, deadline: Instant) {
        let Some(record) = &mut self.record else { return tokio::time::sleep(POLL_INTERVAL).await };
        if !matches!(tokio::time::timeout_at(deadline, record.read(&mut [0])).await, Ok(Ok(1))) {
            self.record = None;
        }
    }

    /// Reaps it in the background; its exit is known from its files.
    pub fn reap_when_ended(mut self) {
        tokio::spawn(async move { self.child.wait().await });
    }
}
