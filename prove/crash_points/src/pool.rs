//! Threads that check states.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use anyhow::{Result, anyhow};

use crate::states::CrashState;

/// Checks states in parallel, each in a directory of its own.
pub struct Pool<'a> {
    pub scratch: &'a Path,
    pub threads: usize,
    /// No more states are checked after this many failures.
    pub max_failures: usize,
    /// Reports a failure.
    pub report: &'a (dyn Fn(&CrashState, &[String], &Path) + Sync),
}

impl Pool<'_> {
    /// `produce` passes states on until that returns false; `check` returns what is wrong with one that was written to a
    /// directory. Returns the number of failures.
    pub fn run(
        &self,
        produce: impl FnOnce(&dyn Fn(CrashState) -> bool),
        check: impl Fn(&Path, &CrashState) -> Result<Vec<String>> + Sync,
    ) -> Result<usize> {
        std::fs::create_dir(self.scratch)?;
        let (failures, number) = (AtomicUsize::new(0), AtomicUsize::new(1));
        let (states, queue) = sync_channel::<CrashState>(self.threads);
        let queue = Mutex::new(queue);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                loop {
                    let next = queue.lock().expect("no panic while it is held").recv();
                    let Ok(state) = next else { return Ok(()) };
                    let directory = self.scratch.join(format!("state-{}", number.fetch_add(1, Ordering::Relaxed)));
                    if !self.is_recovered(&state, &directory, &check)? {
                        failures.fetch_add(1, Ordering::Relaxed);
                    }
                }
            };
            let workers: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            produce(&|state| failures.load(Ordering::Relaxed) < self.max_failures && states.send(state).is_ok());
            drop(states);
            for worker in workers {
                worker.join().map_err(|_| anyhow!("a thread has failed"))??;
            }
            Ok(failures.load(Ordering::Relaxed))
        })
    }

    /// The directory of a failure stays, as it was after the crash.
    fn is_recovered(
        &self,
        state: &CrashState,
        directory: &PathBuf,
        check: impl Fn(&Path, &CrashState) -> Result<Vec<String>>,
    ) -> Result<bool> {
        state.write_to(directory)?;
        let violations = check(directory, state).unwrap_or_else(|error| vec![format!("{error:#}")]);
        std::fs::remove_dir_all(directory)?;
        if violations.is_empty() {
            return Ok(true);
        }
        state.write_to(directory)?;
        (self.report)(state, &violations, directory);
        Ok(false)
    }
}
