//! Crashes at all recorded operations, or at some of them.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::disk::Disk;
use crate::operation::Operation;
use crate::options::Options;
use crate::pool::Pool;
use crate::states::{CrashState, after_crash};

/// How much of a violation is printed.
const MAX_SHOWN: usize = 900;

/// Each K-th of some points.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    pub every: usize,
    pub offset: usize,
}

impl Selection {
    pub fn contains(self, number: usize) -> bool {
        number % self.every == self.offset % self.every
    }
}

/// What was found.
#[derive(Debug)]
pub struct Findings {
    pub part: String,
    /// Where a crash is possible, and which of these were tried.
    pub points: usize,
    pub selection: Selection,
    pub states: usize,
    pub distinct: usize,
    pub failures: usize,
    pub duration: Duration,
    /// Whether a flush was ignored, so that something must be missing.
    pub must_fail: bool,
}

impl Findings {
    pub fn is_as_expected(&self) -> bool {
        (self.failures > 0) == self.must_fail
    }
}

/// What is swept.
pub struct Sweep<'a> {
    pub part: &'a str,
    pub options: &'a Options,
    pub operations: &'a [Operation],
    /// The first operation that is swept.
    pub first: usize,
    /// How many operations are swept by default.
    pub bound: usize,
    /// Flushes of files whose name ends with this are ignored, so that something must be missing.
    pub needed_flush: Option<&'a str>,
    /// A directory on another host, which does not crash. Only operations of the host that crashes are swept.
    pub survivor: Option<PathBuf>,
    /// What is expected after this many operations: equal states are checked once for each number.
    pub expectation: &'a (dyn Fn(usize) -> usize + Sync),
    /// How many threads check states, each with its own programs.
    pub threads: usize,
}

impl Sweep<'_> {
    /// Has each state checked in a directory below `scratch`: `check` returns what is wrong.
    pub fn run(
        &self,
        scratch: &Path,
        check: impl Fn(&Path, &CrashState) -> Result<Vec<String>> + Sync,
    ) -> Result<Findings> {
        let started = Instant::now();
        let must_fail = self.needed_flush.is_some();
        let points = self.points();
        let selection = self.options.selection(points.len(), self.bound);
        let selected: HashSet<usize> =
            points.iter().enumerate().filter(|(number, _)| selection.contains(*number)).map(|(_, at)| *at).collect();
        let report = |state: &CrashState, violations: &[String], directory: &Path| {
            if !must_fail {
                print_failure(self.part, &self.describe(state), violations, directory);
            }
        };
        let max_failures = if must_fail { 1 } else { self.options.max_failures };
        let pool = Pool { scratch, threads: self.threads, max_failures, report: &report };
        let (states, distinct) = (Cell::new(0), Cell::new(0));
        let produce = |send: &dyn Fn(CrashState) -> bool| self.produce(&selected, &states, &distinct, send);
        let failures = pool.run(produce, check)?;
        Ok(Findings {
            part: self.part.to_owned(),
            points: points.len(),
            selection,
            states: states.get(),
            distinct: distinct.get(),
            failures,
            duration: started.elapsed(),
            must_fail,
        })
    }

    fn new_disk(&self) -> Disk {
        let ignored_flush = self.needed_flush.map(str::to_owned).or_else(|| self.options.ignore_flush.clone());
        Disk::new(ignored_flush).with_survivor(self.survivor.clone())
    }

    /// The numbers of operations after which the host can crash.
    fn points(&self) -> Vec<usize> {
        let mut disk = self.new_disk();
        let mut points = if self.first == 0 { vec![0] } else { Vec::new() };
        for (operation, number) in self.operations.iter().zip(1..) {
            disk.apply(operation);
            if number >= self.first && !disk.survives(operation.path(|file| &disk.files[file].name)) {
                points.push(number);
            }
        }
        points
    }

    /// Sends distinct states.
    fn produce(
        &self,
        selected: &HashSet<usize>,
        states: &Cell<usize>,
        distinct: &Cell<usize>,
        send: &dyn Fn(CrashState) -> bool,
    ) {
        let mut disk = self.new_disk();
        let mut seen = HashSet::new();
        for prefix in 0..=self.operations.len() {
            let last = prefix.checked_sub(1).map(|last| &self.operations[last]);
            if let Some(operation) = last {
                disk.apply(operation);
            }
            if !selected.contains(&prefix) {
                continue;
            }
            for state in after_crash(&disk, prefix, last, self.options.posix) {
                states.set(states.get() + 1);
                if seen.insert((state.digest(), (self.expectation)(prefix))) {
                    distinct.set(distinct.get() + 1);
                    if !send(state) {
                        return;
                    }
                }
            }
        }
    }

    fn describe(&self, state: &CrashState) -> String {
        let mut disk = Disk::default();
        for operation in &self.operations[..state.prefix] {
            disk.apply(operation);
        }
        let last = state.prefix.checked_sub(1).map_or_else(
            || "before the first one".to_owned(),
            |last| self.operations[last].describe(|file| &disk.files[file].name),
        );
        format!("after operation {} ({last}): {}", state.prefix, state.variant)
    }
}

/// Prints the operations with their numbers.
pub fn print_operations(operations: &[Operation]) {
    let mut disk = Disk::default();
    for (operation, number) in operations.iter().zip(1..) {
        disk.apply(operation);
        println!("{number:>6} {}", operation.describe(|file| &disk.files[file].name));
    }
}

/// Prints what was violated, and where the directory is.
pub fn print_failure(part: &str, point: &str, violations: &[String], directory: &Path) {
    println!("{part}: {point}\n  {}", directory.display());
    for violation in violations {
        let shown: String = violation.chars().take(MAX_SHOWN).collect();
        println!("  {shown}");
    }
}
