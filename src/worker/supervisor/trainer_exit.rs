//! The trainer's exit, if an init process is between it and the supervisor and reports it. Two threads need it: the
//! reaper, and the lease enforcer if the reaper hangs. So it is read from the pipe itself, which needs no disk.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::unix::pipe::Receiver;

use crate::worker::sandbox::report::{self, SandboxReport, SandboxReportReader};

/// Exit code and signal.
pub type TrainerExit = (Option<i32>, Option<i32>);

/// What the init process has reported so far. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ReportedExit(Arc<Mutex<ReportPipe>>);

#[derive(Debug)]
struct ReportPipe {
    /// `None` once no process is left that could report.
    pipe: Option<File>,
    unread: Vec<u8>,
    ended: Option<TrainerExit>,
}

impl ReportedExit {
    /// From a sandbox that has started. Also returns the receiver of notifications, which ensures that no read blocks.
    ///
    /// # Errors
    /// If the pipe cannot be polled.
    pub fn from_reports(reports: SandboxReportReader) -> io::Result<(Self, Receiver)> {
        let (pipe, unread) = reports.into_pipe();
        let receiver = Receiver::from_owned_fd(pipe.try_clone()?)?;
        let report_pipe = ReportPipe { pipe: Some(File::from(pipe)), unread, ended: None };
        Ok((Self(Arc::new(Mutex::new(report_pipe))), receiver))
    }

    /// The trainer's exit, if it was reported by now. No report means nothing while the init process is alive.
    pub fn trainer_exit(&self) -> Option<TrainerExit> {
        let mut report_pipe = self.pipe();
        // Not through the receiver: it has no notifications while its thread hangs.
        report_pipe.read(|mut pipe, bytes| pipe.read(bytes));
        report_pipe.ended
    }

    /// Reads after a notification. Returns whether more reports are possible.
    pub fn read_reports(&self, receiver: &Receiver) -> bool {
        let mut report_pipe = self.pipe();
        report_pipe.read(|_, bytes| receiver.try_read(bytes));
        report_pipe.pipe.is_some()
    }

    fn pipe(&self) -> MutexGuard<'_, ReportPipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportPipe {
    fn read(&mut self, read: impl Fn(&File, &mut [u8]) -> io::Result<usize>) {
        let mut bytes = [0; 1024];
        while let Some(pipe) = &self.pipe {
            match read(pipe, &mut bytes) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        while let Ok(Some(report)) = report::parse_first_line(&mut self.unread) {
            if let SandboxReport::Ended { code, signal } = report {
                self.ended = Some((code, signal));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::worker::sandbox::report::send;

    const END: Option<TrainerExit> = Some((Some(3), None));

    /// As the supervisor has it, and the other end of its pipe.
    fn reported() -> io::Result<(ReportedExit, Receiver, io::PipeWriter)> {
        let (reader, pipe) = io::pipe()?;
        let (reported, receiver) = ReportedExit::from_reports(SandboxReportReader::new(reader))?;
        Ok((reported, receiver, pipe))
    }

    #[tokio::test]
    async fn reported_exit_is_visible_to_all_readers() -> io::Result<()> {
        let (reaper, receiver, pipe) = reported()?;
        let enforcer = reaper.clone();
        assert_eq!((enforcer.trainer_exit(), reaper.read_reports(&receiver)), (None, true));
        send(&pipe, &SandboxReport::Ended { code: Some(3), signal: None })?;
        // The receiver was not polled.
        assert_eq!((enforcer.trainer_exit(), reaper.trainer_exit()), (END, END));
        drop(pipe);
        receiver.readable().await?;
        assert!(!reaper.read_reports(&receiver));
        assert_eq!(enforcer.trainer_exit(), END);
        Ok(())
    }

    #[tokio::test]
    async fn waiter_is_woken_once_per_report() -> io::Result<()> {
        let (reaper, receiver, pipe) = reported()?;
        send(&pipe, &SandboxReport::Running)?;
        receiver.readable().await?;
        assert!(reaper.read_reports(&receiver));
        let next_poll = pin!(receiver.readable()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(next_poll.is_pending(), "it is woken again for a report that was read");
        send(&pipe, &SandboxReport::Ended { code: Some(3), signal: None })?;
        receiver.readable().await?;
        assert!(reaper.read_reports(&receiver));
        assert_eq!(reaper.trainer_exit(), END);
        Ok(())
    }
}
