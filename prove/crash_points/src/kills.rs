//! Kills a traced program at each of its operations: one run for each.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::options::Options;
use crate::sweep::{Findings, print_failure};
use crate::tracer::{Call, Decision, Observer};

/// Kills the program before an operation of another observer.
pub struct Killer<O> {
    pub inner: O,
    /// The number of the operation; `None`: never.
    pub at: Option<usize>,
    /// How many operations have begun.
    pub begun: std::sync::Arc<AtomicUsize>,
}

impl<O: Observer> Observer for Killer<O> {
    fn enter(&mut self, call: &Call) -> Result<Decision> {
        let decision = self.inner.enter(call)?;
        if decision == Decision::Ignore {
            return Ok(decision);
        }
        let begun = self.begun.fetch_add(1, Ordering::SeqCst);
        Ok(if self.at == Some(begun) { Decision::Kill } else { decision })
    }

    fn is_watched(&self, number: i64) -> bool {
        self.inner.is_watched(number)
    }

    fn leave(&mut self, call: &Call, result: i64) -> Result<()> {
        self.inner.leave(call, result)
    }
}

/// What a run has shown.
pub struct Outcome {
    /// Whether it came as far as the operation at which it should be killed.
    pub was_killed: bool,
    pub violations: Vec<String>,
}

/// The runs of one part.
pub struct Kills<'a> {
    pub part: &'a str,
    pub options: &'a Options,
    /// How many operations a run has.
    pub points: usize,
    /// How many are tried by default.
    pub bound: usize,
    pub threads: usize,
}

impl Kills<'_> {
    /// `run` kills the program at an operation, in a directory that it creates. Runs that were killed count as distinct.
    pub fn run(&self, scratch: &Path, run: impl Fn(usize, &Path) -> Result<Outcome> + Sync) -> Result<Findings> {
        let started = Instant::now();
        std::fs::create_dir(scratch)?;
        let selection = self.options.selection(self.points, self.bound);
        let selected: Vec<usize> = (0..self.points).filter(|point| selection.contains(*point)).collect();
        let (tried, failures, killed) = (selected.len(), AtomicUsize::new(0), AtomicUsize::new(0));
        let next = Mutex::new(selected.into_iter());
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                loop {
                    let point = next.lock().expect("no panic while it is held").next();
                    let Some(point) = point.filter(|_| failures.load(Ordering::Relaxed) < self.options.max_failures)
                    else {
                        return Ok(());
                    };
                    let directory = scratch.join(format!("kill-{point}"));
                    let Outcome { was_killed, violations } = run(point, &directory)
                        .unwrap_or_else(|error| Outcome { was_killed: false, violations: vec![format!("{error:#}")] });
                    killed.fetch_add(usize::from(was_killed), Ordering::Relaxed);
                    if violations.is_empty() {
                        std::fs::remove_dir_all(&directory)?;
                        continue;
                    }
                    failures.fetch_add(1, Ordering::Relaxed);
                    print_failure(self.part, &format!("killed at operation {point}"), &violations, &directory);
                }
            };
            let workers: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread has failed"))?)
        })?;
        Ok(Findings {
            part: self.part.to_owned(),
            points: self.points,
            selection,
            states: tried,
            distinct: killed.into_inner(),
            failures: failures.into_inner(),
            duration: started.elapsed(),
            must_fail: false,
        })
    }
}
