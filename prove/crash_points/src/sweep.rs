//! Crashes at all recorded operations, or at some of them, checked by several threads.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::disk::Disk;
use crate::operation::Operation;
use crate::states::{CrashState, after_crash};

/// Which operations are swept.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    /// Each of this number.
    pub every: usize,
    /// The first one.
    pub offset: usize,
}

impl Selection {
    fn contains(self, prefix: usize) -> bool {
        prefix % self.every == self.offset % self.every
    }
}

/// What a sweep has found.
#[derive(Debug, Default)]
pub struct Findings {
    pub part: String,
    pub operations: usize,
    pub states: usize,
    pub distinct: usize,
    pub failures: Vec<Failure>,
    pub duration: Duration,
    /// Whether a flush was ignored, so that something must be missing.
    pub must_fail: bool,
}

impl Findings {
    pub fn is_as_expected(&self) -> bool {
        self.failures.is_empty() != self.must_fail
    }
}

/// A crash after which something was wrong.
#[derive(Debug)]
pub struct Failure {
    pub point: String,
    pub violations: Vec<String>,
    /// The directory after the crash.
    pub directory: PathBuf,
}

/// What is swept.
pub struct Sweep<'a> {
    pub part: String,
    pub operations: &'a [Operation],
    pub selection: Selection,
    /// Flushes of files whose name ends with this are ignored.
    pub ignored_flush: Option<String>,
    /// Also names that are only on disk if their directory was flushed.
    pub posix: bool,
    /// Ends after this many failures.
    pub max_failures: usize,
    /// What is expected after this many operations: equal states are checked once for each number.
    pub expectation: &'a (dyn Fn(usize) -> usize + Sync),
}

/// The threads that check states, each with a server.
const THREADS: usize = 2;

impl Sweep<'_> {
    /// Writes each state below `scratch`, and has it checked there: `check` returns what is wrong.
    pub fn run(
        &self,
        scratch: &Path,
        check: impl Fn(&Path, &CrashState) -> Result<Vec<String>> + Sync,
    ) -> Result<Findings> {
        let started = Instant::now();
        let findings = Mutex::new(Findings { part: self.part.clone(), ..Findings::default() });
        let (states, queue) = sync_channel::<(usize, CrashState)>(THREADS);
        let queue = Mutex::new(queue);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                loop {
                    let next = queue.lock().expect("no panic while it is held").recv();
                    let Ok((number, state)) = next else { return Ok(()) };
                    let directory = scratch.join(format!("state-{number}"));
                    state.write_to(&directory).with_context(|| format!("{} {}", state.prefix, state.variant))?;
                    let violations = check(&directory, &state)?;
                    std::fs::remove_dir_all(&directory)?;
                    if !violations.is_empty() {
                        state.write_to(&directory)?;
                        let failure = Failure { point: self.describe(&state), violations, directory };
                        findings.lock().expect("no panic while it is held").failures.push(failure);
                    }
                }
            };
            let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            self.produce(&findings, |number, state| states.send((number, state)).is_ok());
            drop(states);
            for worker in workers {
                worker.join().map_err(|_| anyhow!("a thread has failed"))??;
            }
            Ok::<_, anyhow::Error>(())
        })?;
        let mut findings = findings.into_inner().expect("no panic while it is held");
        findings.duration = started.elapsed();
        Ok(findings)
    }

    /// Sends distinct states until there are too many failures.
    fn produce(&self, findings: &Mutex<Findings>, send: impl Fn(usize, CrashState) -> bool) {
        let mut disk = Disk::new(self.ignored_flush.clone());
        let mut seen = HashSet::new();
        for prefix in 0..=self.operations.len() {
            let last = prefix.checked_sub(1).map(|last| &self.operations[last]);
            if let Some(operation) = last {
                disk.apply(operation);
            }
            if !self.selection.contains(prefix) {
                continue;
            }
            findings.lock().expect("no panic while it is held").operations += 1;
            for state in after_crash(&disk, prefix, last, self.posix) {
                let mut findings = findings.lock().expect("no panic while it is held");
                findings.states += 1;
                if findings.failures.len() >= self.max_failures {
                    return;
                }
                if seen.insert((state.digest(), (self.expectation)(prefix))) {
                    findings.distinct += 1;
                    let number = findings.distinct;
                    drop(findings);
                    if !send(number, state) {
                        return;
                    }
                }
            }
        }
    }

    fn describe(&self, state: &CrashState) -> String {
        let mut disk = Disk::new(None);
        for operation in &self.operations[..state.prefix] {
            disk.apply(operation);
        }
        let last = state.prefix.checked_sub(1).map_or_else(
            || "before the first operation".to_owned(),
            |last| self.operations[last].describe(|file| &disk.files[file].name),
        );
        format!("after operation {} ({last}), {}", state.prefix, state.variant)
    }
}
