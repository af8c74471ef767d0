//! Messages from the sandbox to the supervisor, one JSON object per line, through a pipe that the trainer does not get.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

/// A hung disk must not block the supervisor forever.
const SETUP_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxReport {
    /// The PID of the init process, as the supervisor sees it.
    Init(i32),
    /// The trainer is running.
    Running,
    /// The trainer did not start.
    Failed(LaunchFailure),
    /// The trainer has exited.
    Ended {
        /// Its exit code, if it exited by itself.
        code: Option<i32>,
        /// The signal that killed it, if one did.
        signal: Option<i32>,
    },
}

/// Why a trainer could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    /// A message for the job's page.
    pub why: String,
    /// Whether this host is at fault: then another host may run it.
    pub host_fault: bool,
}

impl LaunchFailure {
    /// This host cannot create the required sandbox.
    pub fn host_fault(why: impl Into<String>) -> Self {
        Self { why: why.into(), host_fault: true }
    }
}

/// Writes a report to a pipe.
///
/// # Errors
/// If it is no longer read.
pub fn send(mut pipe: impl Write, report: &SandboxReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    pipe.write_all(&line)
}

/// The supervisor's end of the pipe.
#[derive(Debug)]
pub struct SandboxReportReader {
    pipe: File,
    unread: Vec<u8>,
}

impl SandboxReportReader {
    /// From the child's standard output.
    pub fn new(pipe: impl Into<OwnedFd>) -> Self {
        Self { pipe: File::from(pipe.into()), unread: Vec::new() }
    }

    /// The next report; `None` once every writer has closed the pipe.
    ///
    /// # Errors
    /// If none arrives in time, or it cannot be read.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<SandboxReport>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(report) = self.take_report()? {
                return Ok(Some(report));
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(remaining).unwrap_or(PollTimeout::MAX);
            let mut ready = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                // A child has exited.
                Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let mut bytes = [0; 4096];
            match self.pipe.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the trainer runs. Returns the init process, if there is one.
    ///
    /// # Errors
    /// Why it does not run.
    pub fn wait_until_running(&mut self) -> Result<Option<i32>, LaunchFailure> {
        let (mut init, mut is_running, mut exit_report) = (None, false, Vec::new());
        while init.is_none() || !is_running {
            match self.next(SETUP_TIMEOUT) {
                // Two processes write to the pipe, so any of these three can be the first.
                Ok(Some(SandboxReport::Init(pid))) => init = Some(pid),
                Ok(Some(SandboxReport::Running)) => is_running = true,
                Ok(Some(report @ SandboxReport::Ended { .. })) => {
                    send(&mut exit_report, &report).map_err(unreadable_report)?;
                }
                Ok(Some(SandboxReport::Failed(failure))) => return Err(failure),
                // Without an init process the trainer has replaced the reporting process, and the pipe is closed.
                Ok(None) if init.is_none() && !is_running => return Ok(None),
                Ok(None) => return Err(LaunchFailure::host_fault("the sandbox exited before the trainer started")),
                Err(error) => return Err(unreadable_report(error)),
            }
        }
        // An early exit report is left for the caller that waits for the exit.
        exit_report.append(&mut self.unread);
        self.unread = exit_report;
        Ok(init)
    }

    /// The pipe and its unread bytes, for the caller that waits for the exit.
    pub fn into_pipe(self) -> (OwnedFd, Vec<u8>) {
        (self.pipe.into(), self.unread)
    }

    fn take_report(&mut self) -> io::Result<Option<SandboxReport>> {
        parse_first_line(&mut self.unread)
    }
}

/// Waits until the supervisor has exited: nothing reads from the pipe then. Returns false if that has not happened in
/// time.
pub fn has_no_reader(pipe: BorrowedFd<'_>, timeout: PollTimeout) -> bool {
    loop {
        let mut closed = [PollFd::new(pipe, PollFlags::empty())];
        match poll(&mut closed, timeout) {
            Err(Errno::EINTR) => {}
            result => return result.is_ok_and(|events| events > 0),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err asks for")]
fn unreadable_report(error: io::Error) -> LaunchFailure {
    LaunchFailure::host_fault(format!("the sandbox did not start: {error}"))
}

/// Removes the first complete line from the unread bytes, and parses it.
///
/// # Errors
/// If it is no report.
pub fn parse_first_line(unread: &mut Vec<u8>) -> io::Result<Option<SandboxReport>> {
    let Some(end) = unread.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line: Vec<u8> = unread.drain(..=end).collect();
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(lines: &str) -> io::Result<SandboxReportReader> {
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(lines.as_bytes())?;
        Ok(SandboxReportReader::new(reader))
    }

    #[test]
    fn reports_round_trip() -> io::Result<()> {
        let all = [
            SandboxReport::Init(7),
            SandboxReport::Running,
            SandboxReport::Failed(LaunchFailure::host_fault("why\nnot")),
            SandboxReport::Ended { code: None, signal: Some(9) },
        ];
        let (reader, writer) = io::pipe()?;
        for report in &all {
            send(&writer, report)?;
        }
        drop(writer);
        let mut reports = SandboxReportReader::new(reader);
        for report in all {
            assert_eq!(reports.next(SETUP_TIMEOUT)?, Some(report));
        }
        assert_eq!(reports.next(SETUP_TIMEOUT)?, None);
        Ok(())
    }

    #[test]
    fn trainer_has_started_when_reported_or_pipe_is_closed() -> io::Result<()> {
        assert_eq!(reports("{\"init\":7}\n\"running\"\n")?.wait_until_running(), Ok(Some(7)));
        assert_eq!(reports("")?.wait_until_running(), Ok(None));
        let failure = LaunchFailure { why: "x".to_owned(), host_fault: false };
        assert_eq!(reports("{\"failed\":{\"why\":\"x\",\"host_fault\":false}}\n")?.wait_until_running(), Err(failure));
        assert!(reports("{\"init\":7}\n")?.wait_until_running().is_err_and(|failure| failure.host_fault));
        assert!(reports("nonsense\n")?.wait_until_running().is_err_and(|failure| failure.host_fault));
        Ok(())
    }

    #[test]
    fn reports_of_two_processes_arrive_in_any_order() -> io::Result<()> {
        let (init, running) = ("{\"init\":7}\n", "\"running\"\n");
        let ended = "{\"ended\":{\"code\":3,\"signal\":null}}\n";
        for lines in [[init, running, ended], [running, init, ended], [running, ended, init]] {
            let mut reports = reports(&lines.concat())?;
            assert_eq!(reports.wait_until_running(), Ok(Some(7)), "{lines:?}");
            assert_eq!(
                reports.next(SETUP_TIMEOUT)?,
                Some(SandboxReport::Ended { code: Some(3), signal: None }),
                "{lines:?}"
            );
            assert_eq!(reports.next(SETUP_TIMEOUT)?, None);
        }
        Ok(())
    }

    #[test]
    fn end_of_the_reader_is_noticed() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        assert!(!has_no_reader(writer.as_fd(), PollTimeout::ZERO));
        drop(reader);
        assert!(has_no_reader(writer.as_fd(), PollTimeout::NONE));
        Ok(())
    }

    #[test]
    fn silent_sandbox_times_out() -> io::Result<()> {
        let (reader, _writer) = io::pipe()?;
        let silent = SandboxReportReader::new(reader).next(Duration::from_millis(10));
        assert!(silent.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        Ok(())
    }
}
