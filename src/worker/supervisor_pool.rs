//! Supervisors as the agent sees them. They are started in advance, because starting a program and entering a control group
//! take longer than all else before a trainer starts; and they supervise one attempt after the other.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use crate::worker::supervisor::agent_pipe::{Assignment, SupervisorEvent, SupervisorOrder};

/// How often its files are looked at once it can report nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Variables by which the dynamic linker finds the program's libraries.
const PASSED_VARIABLES: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

/// The supervisors that this agent has started.
#[derive(Debug)]
pub struct SupervisorPool {
    /// One per job at most.
    max_count: usize,
    work_dir: PathBuf,
    /// Where they create the control groups of their jobs.
    cgroup_parent: Option<PathBuf>,
    idle: Mutex<Vec<SupervisorProcess>>,
    /// Each process has a clone.
    counted: Arc<()>,
}

impl SupervisorPool {
    pub fn new(max_count: usize, work_dir: PathBuf, cgroup_parent: Option<PathBuf>) -> Self {
        Self { max_count, work_dir, cgroup_parent, idle: Mutex::default(), counted: Arc::default() }
    }

    /// Starts one in advance, if none is idle and another job may run at the same time.
    pub fn refill(&self) {
        let count = Arc::strong_count(&self.counted) - 1;
        if self.idle().is_empty() && count < self.max_count {
            match self.spawn() {
                Ok(supervisor) => self.idle().push(supervisor),
                Err(error) => tracing::warn!("cannot start a supervisor in advance: {error}"),
            }
        }
    }

    /// Assigns an attempt to an idle supervisor, or to a new one.
    ///
    /// # Errors
    /// If none can be started.
    pub async fn assign(&self, assignment: Assignment) -> io::Result<SupervisorProcess> {
        let order = SupervisorOrder::Prepare(assignment);
        loop {
            let idle = self.idle().pop();
            let is_new = idle.is_none();
            let mut supervisor = idle.map_or_else(|| self.spawn(), Ok)?;
            supervisor.is_idle = false;
            match supervisor.send(&order).await {
                // It was killed while it was idle.
                Err(_) if !is_new => {}
                result => return result.map(|()| supervisor),
            }
        }
    }

    /// Keeps a supervisor whose attempt has ended for the next one.
    pub fn put_back(&self, supervisor: SupervisorProcess) {
        self.idle().push(supervisor);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SupervisorProcess>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self) -> io::Result<SupervisorProcess> {
        // Not by its path, because another version may have replaced the program.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("simpletuner-worker").arg("supervise").arg(&self.work_dir);
        if let Some(parent) = &self.cgroup_parent {
            command.arg("--cgroup-parent").arg(parent);
        }
        let passed = PASSED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        // Its log is this agent's until it has an attempt, and then a file.
        command.env_clear().envs(passed).env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, events) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        let events = Some(BufReader::new(events).lines());
        Ok(SupervisorProcess { child, orders, events, is_idle: true, _counted: Arc::clone(&self.counted) })
    }
}

/// When this is dropped, it exits once its attempt has ended, and without a permit at once.
#[derive(Debug)]
pub struct SupervisorProcess {
    child: Child,
    orders: ChildStdin,
    /// `None` once it can send nothing more.
    events: Option<Lines<BufReader<ChildStdout>>>,
    is_idle: bool,
    _counted: Arc<()>,
}

impl SupervisorProcess {
    /// Permits it to start the trainer. If it has exited, its exit status tells why.
    pub async fn permit_start(&mut self) {
        let _ = self.send(&SupervisorOrder::Start).await;
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
        if self.events.is_none() {
            tokio::time::sleep(POLL_INTERVAL).await;
        } else {
            // Whatever it has sent, its files tell what has happened.
            let _ = tokio::time::timeout_at(deadline, self.next_event()).await;
        }
    }

    /// Waits until its attempt has ended and it is free for another one. Returns false if it never will be. Cancel-safe.
    pub async fn wait_until_idle(&mut self) -> bool {
        while !self.is_idle && self.next_event().await.is_some() {}
        self.is_idle
    }

    /// Kills it.
    pub async fn kill(mut self) {
        // It has exited if this fails.
        let _ = self.child.kill().await;
    }

    async fn send(&mut self, order: &SupervisorOrder) -> io::Result<()> {
        let line = serde_json::to_vec(order).map_err(io::Error::other)?;
        self.orders.write_all(&[line, vec![b'\n']].concat()).await
    }

    /// The next event; `None` if there will be none.
    async fn next_event(&mut self) -> Option<SupervisorEvent> {
        let line = self.events.as_mut()?.next_line().await.ok().flatten();
        let event = line.and_then(|line| serde_json::from_str(&line).ok());
        match event {
            Some(SupervisorEvent::Ended) => self.is_idle = true,
            Some(SupervisorEvent::Recorded) => {}
            None => self.events = None,
        }
        event
    }
}
