//! Programs as processes: output in a file, signals by process id, and cleanup.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::wait_until;

/// A started program; it is killed on drop.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it, appending its output to a file.
    pub fn start(command: Command, log: PathBuf) -> Self {
        Self::start_with_stderr(command, log, None)
    }

    /// Like `start`, with another stderr.
    pub fn start_with_stderr(mut command: Command, log: PathBuf, stderr: Option<Stdio>) -> Self {
        let out = OpenOptions::new().create(true).append(true).open(&log).expect("a log file");
        let both = out.try_clone().expect("another handle");
        command.stdin(Stdio::null()).stdout(both).stderr(stderr.unwrap_or_else(|| out.into()));
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        Self { child, log }
    }

    /// Returns its process id, until its exit was noticed.
    pub fn pid(&self) -> i32 {
        self.child.id().and_then(|pid| pid.try_into().ok()).expect("a running program")
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a running program");
    }

    /// Kills it, like a power failure.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a running program");
    }

    /// Waits for its exit; returns the exit code, or `None` after a signal.
    pub async fn wait(&mut self) -> Option<i32> {
        wait_until("a program's end", async || self.child.try_wait().expect("a child")).await.code()
    }

    /// Returns whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Returns everything in its log, also from earlier runs.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns the listen address from a server's log.
    pub fn address(&self) -> Option<String> {
        let output = self.output();
        let line = output.split_once("listening on ")?.1.split_once('\n')?.0;
        Some(line.trim().to_owned())
    }
}

/// No test leaves a process or a zombie behind, even if it panics.
impl Drop for Program {
    fn drop(&mut self) {
        // It fails if the process has ended.
        let _ = self.child.start_kill();
        while matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the running processes whose command line or environment contains a text, as `(id, command line)`.
pub fn processes_that_mention(text: &str) -> Vec<(i32, String)> {
    let own_pid = std::process::id().cast_signed();
    let ids =
        fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let read = |id: i32, file: &str| {
        String::from_utf8_lossy(&fs::read(format!("/proc/{id}/{file}")).unwrap_or_default()).into_owned()
    };
    ids.filter(|id| *id != own_pid)
        .map(|id| (id, read(id, "cmdline"), read(id, "environ")))
        .filter(|(_, command, environment)| command.contains(text) || environment.contains(text))
        .map(|(id, command, _)| (id, command.replace('\0', " ")))
        .collect()
}

/// Kills leftovers of a test: supervisors, trainers and their children have its temporary directory in their command
/// line or environment.
pub fn kill_all_that_mention(text: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let remaining = processes_that_mention(text);
        if remaining.is_empty() || Instant::now() > end {
            return;
        }
        for (id, _) in remaining {
            // It may have ended already.
            let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        }
        std::thread::sleep(super::POLL_INTERVAL);
    }
}
