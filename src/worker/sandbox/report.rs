//! What the sandbox tells the supervisor, one JSON line each, through a pipe that the trainer does not get.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

/// How long setting up may take. A disk that hangs must not hold up the supervisor for ever.
const SET_UP: Duration = Duration::from_mins(1);

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The process id of the init process, as the supervisor sees it.
    Init(i32),
    /// The trainer runs.
    Running,
    /// It does not.
    Failed(Failure),
    /// The trainer has ended.
    Ended {
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that killed it, if one did.
        signal: Option<i32>,
    },
}

/// Why a trainer could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A sentence for the job's page.
    pub why: String,
    /// Whether this host is at fault: another one may do better.
    pub host_fault: bool,
}

impl Failure {
    /// This host cannot confine a trainer as it should.
    pub fn host(why: impl Into<String>) -> Self {
        Self { why: why.into(), host_fault: true }
    }
}

/// Writes a report to a pipe.
///
/// # Errors
/// If nobody reads it any more.
pub fn send(mut pipe: impl Write, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    pipe.write_all(&line)
}

/// The supervisor's end of the pipe.
#[derive(Debug)]
pub struct Reports {
    pipe: File,
    unread: Vec<u8>,
}

impl Reports {
    /// From the child's standard output.
    pub fn new(pipe: impl Into<OwnedFd>) -> Self {
        Self { pipe: File::from(pipe.into()), unread: Vec::new() }
    }

    /// The next report; none once every writer has closed the pipe.
    ///
    /// # Errors
    /// If none comes in time, or none can be read.
    pub fn next(&mut self, within: Duration) -> io::Result<Option<Report>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(report) = self.take_line()? {
                return Ok(Some(report));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut ready = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                // A child has ended.
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

    /// Waits until the trainer runs. Answers with the init process, if there is one.
    ///
    /// # Errors
    /// Why it does not.
    pub fn started(&mut self) -> Result<Option<i32>, Failure> {
        let (mut init, mut runs, mut end) = (None, false, Vec::new());
        while init.is_none() || !runs {
            match self.next(SET_UP) {
                // Two processes write to the pipe, so any of these three can be the first.
                Ok(Some(Report::Init(pid))) => init = Some(pid),
                Ok(Some(Report::Running)) => runs = true,
                Ok(Some(report @ Report::Ended { .. })) => send(&mut end, &report).map_err(unread)?,
                Ok(Some(Report::Failed(failure))) => return Err(failure),
                // Without an init process the trainer has taken the place of who reported, and the pipe is closed.
                Ok(None) if init.is_none() && !runs => return Ok(None),
                Ok(None) => return Err(Failure::host("the sandbox ended before the trainer began")),
                Err(error) => return Err(unread(error)),
            }
        }
        // An end that came early is for whoever waits for it.
        end.append(&mut self.unread);
        self.unread = end;
        Ok(init)
    }

    /// What stays to be read, for whoever waits for the end.
    pub fn into_pipe(self) -> (OwnedFd, Vec<u8>) {
        (self.pipe.into(), self.unread)
    }

    fn take_line(&mut self) -> io::Result<Option<Report>> {
        take_line(&mut self.unread)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err asks for")]
fn unread(error: io::Error) -> Failure {
    Failure::host(format!("the sandbox does not start: {error}"))
}

/// Takes the first whole line off what was read.
///
/// # Errors
/// If it is no report.
pub fn take_line(unread: &mut Vec<u8>) -> io::Result<Option<Report>> {
    let Some(end) = unread.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line: Vec<u8> = unread.drain(..=end).collect();
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(lines: &str) -> io::Result<Reports> {
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(lines.as_bytes())?;
        Ok(Reports::new(reader))
    }

    #[test]
    fn reports_are_read_as_they_were_sent() -> io::Result<()> {
        let all = [
            Report::Init(7),
            Report::Running,
            Report::Failed(Failure::host("why\nnot")),
            Report::Ended { code: None, signal: Some(9) },
        ];
        let (reader, writer) = io::pipe()?;
        for report in &all {
            send(&writer, report)?;
        }
        drop(writer);
        let mut reports = Reports::new(reader);
        for report in all {
            assert_eq!(reports.next(SET_UP)?, Some(report));
        }
        assert_eq!(reports.next(SET_UP)?, None);
        Ok(())
    }

    #[test]
    fn a_trainer_has_started_once_it_runs_or_has_replaced_who_reports() -> io::Result<()> {
        assert_eq!(reports("{\"init\":7}\n\"running\"\n")?.started(), Ok(Some(7)));
        assert_eq!(reports("")?.started(), Ok(None));
        let failure = Failure { why: "x".to_owned(), host_fault: false };
        assert_eq!(reports("{\"failed\":{\"why\":\"x\",\"host_fault\":false}}\n")?.started(), Err(failure));
        assert!(reports("{\"init\":7}\n")?.started().is_err_and(|failure| failure.host_fault));
        assert!(reports("nonsense\n")?.started().is_err_and(|failure| failure.host_fault));
        Ok(())
    }

    #[test]
    fn reports_of_two_processes_come_in_any_order() -> io::Result<()> {
        let (init, running) = ("{\"init\":7}\n", "\"running\"\n");
        let ended = "{\"ended\":{\"code\":3,\"signal\":null}}\n";
        for lines in [[init, running, ended], [running, init, ended], [running, ended, init]] {
            let mut reports = reports(&lines.concat())?;
            assert_eq!(reports.started(), Ok(Some(7)), "{lines:?}");
            assert_eq!(reports.next(SET_UP)?, Some(Report::Ended { code: Some(3), signal: None }), "{lines:?}");
            assert_eq!(reports.next(SET_UP)?, None);
        }
        Ok(())
    }

    #[test]
    fn a_sandbox_that_says_nothing_is_given_up() -> io::Result<()> {
        let (reader, _writer) = io::pipe()?;
        let silent = Reports::new(reader).next(Duration::from_millis(10));
        assert!(silent.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        Ok(())
    }
}
