//! Flushes the results of attempts, while the agent already sends them.

use std::fs::File;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::worker::files::{AttemptDir, AttemptExit, AttemptState, StopCause};

/// The result of an attempt that took less time is not flushed: after a crash of the host, it runs again.
const MIN_FLUSHED_TIME: Duration = Duration::from_secs(1);

/// The flushes that may still run, each with the directory of its attempt.
#[derive(Default)]
pub struct ResultFlushes(Vec<(AttemptDir, JoinHandle<()>)>);

impl ResultFlushes {
    /// Begins to flush what an attempt has written, and records when that is done, unless the job runs again anyway.
    pub fn start(&mut self, dir: AttemptDir, exit: AttemptExit, duration: Duration) {
        self.0.retain(|(_, flush)| !flush.is_finished());
        let runs_again = matches!(exit.stopped, Some(StopCause::Requeue | StopCause::Lease | StopCause::Superseded));
        if duration >= MIN_FLUSHED_TIME && !runs_again {
            let flushed_dir = dir.clone();
            self.0.push((dir, std::thread::spawn(move || flush_result(&flushed_dir, exit))));
        }
    }

    /// Waits for the flushes of results that the agent has not sent.
    pub fn finish(self) {
        for (dir, flush) in self.0 {
            let state = dir.read_json::<AttemptState>("state.json").ok().flatten();
            if dir.path().exists() && !state.is_some_and(|state| state.delivered) {
                // A panic is in the log.
                let _ = flush.join();
            }
        }
    }
}

fn flush_result(dir: &AttemptDir, exit: AttemptExit) {
    let flushed = File::open(dir.path()).and_then(|open| Ok(nix::unistd::syncfs(open)?));
    let recorded = flushed.and_then(|()| dir.write_json("exit.json", &AttemptExit { is_flushed: true, ..exit }));
    match recorded {
        // The agent has removed it.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot flush {}: {error}", dir.path().display());
        }
        _ => {}
    }
}
