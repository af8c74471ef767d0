//! How the trainer ended, where an init process stands between it and the supervisor and reports that. Two look for it: the
//! reaper, and the guard when the reaper stands still. So it is read from the pipe itself, which is no file of a disk.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::unix::pipe::Receiver;

use crate::sandbox::report::{self, Report, Reports};

/// Exit code and signal.
pub type Ending = (Option<i32>, Option<i32>);

/// What the init process has reported so far, for whoever asks.
#[derive(Debug, Clone)]
pub struct Reported(Arc<Mutex<Inbox>>);

#[derive(Debug)]
struct Inbox {
    /// None once nobody is left who could report.
    pipe: Option<File>,
    unread: Vec<u8>,
    ended: Option<Ending>,
}

impl Reported {
    /// From a sandbox that has started. Answers also with who waits for news, which sees to it that no read waits.
    ///
    /// # Errors
    /// If they cannot be waited for.
    pub fn of(reports: Reports) -> io::Result<(Self, Receiver)> {
        let (pipe, unread) = reports.into_pipe();
        let news = Receiver::from_owned_fd(pipe.try_clone()?)?;
        let inbox = Inbox { pipe: Some(File::from(pipe)), unread, ended: None };
        Ok((Self(Arc::new(Mutex::new(inbox))), news))
    }

    /// The trainer's end, if it has been reported by now. Silence says nothing as long as the init process lives.
    pub fn ended(&self) -> Option<Ending> {
        let mut inbox = self.inbox();
        // Not by who waits: it knows of no news while its thread stands still.
        inbox.read(|mut pipe, bytes| pipe.read(bytes));
        inbox.ended
    }

    /// Takes the news that somebody was told of. Whether there can be more.
    pub fn take(&self, news: &Receiver) -> bool {
        let mut inbox = self.inbox();
        inbox.read(|_, bytes| news.try_read(bytes));
        inbox.pipe.is_some()
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
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
        while let Ok(Some(report)) = report::take_line(&mut self.unread) {
            if let Report::Ended { code, signal } = report {
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
    use crate::sandbox::report::send;

    const END: Option<Ending> = Some((Some(3), None));

    /// As the supervisor has it, and the other end of its pipe.
    fn reported() -> io::Result<(Reported, Receiver, io::PipeWriter)> {
        let (reader, pipe) = io::pipe()?;
        let (reported, news) = Reported::of(Reports::new(reader))?;
        Ok((reported, news, pipe))
    }

    #[tokio::test]
    async fn an_end_is_known_to_all_who_ask_as_soon_as_it_is_told() -> io::Result<()> {
        let (reaper, news, pipe) = reported()?;
        let guard = reaper.clone();
        assert_eq!((guard.ended(), reaper.take(&news)), (None, true));
        send(&pipe, &Report::Ended { code: Some(3), signal: None })?;
        // Nobody has waited for it.
        assert_eq!((guard.ended(), reaper.ended()), (END, END));
        drop(pipe);
        news.readable().await?;
        assert!(!reaper.take(&news));
        assert_eq!(guard.ended(), END);
        Ok(())
    }

    #[tokio::test]
    async fn who_waits_is_woken_once_for_each_piece_of_news() -> io::Result<()> {
        let (reaper, news, pipe) = reported()?;
        send(&pipe, &Report::Running)?;
        news.readable().await?;
        assert!(reaper.take(&news));
        let again = pin!(news.readable()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(again.is_pending(), "it is woken for what was taken");
        send(&pipe, &Report::Ended { code: Some(3), signal: None })?;
        news.readable().await?;
        assert!(reaper.take(&news));
        assert_eq!(reaper.ended(), END);
        Ok(())
    }
}
