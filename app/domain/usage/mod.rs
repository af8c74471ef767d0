//! What the fleet's GPUs were used for in a stretch of time: who held how many for how long, how long jobs waited, and when
//! workers had nothing to do while jobs waited.

pub mod calendar;
pub mod fleet;
pub mod spans;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{JobId, WorkerId};
use super::labels::Labels;
use super::time::{Millis, Timestamp};

/// A stretch of time: what lies outside does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From this moment.
    pub since: Timestamp,
    /// Until before this one.
    pub until: Timestamp,
}

impl Window {
    /// The part of a span that lies inside; what has no end goes on.
    pub fn part(self, from: Timestamp, until: Option<Timestamp>) -> Option<(Timestamp, Timestamp)> {
        let (from, until) = (from.max(self.since), until.unwrap_or(self.until).min(self.until));
        (from < until).then_some((from, until))
    }
}

/// An attempt, as far as it is about use.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Of which job.
    pub job: JobId,
    /// Who submitted it.
    pub user: String,
    /// Its configuration.
    pub config: String,
    /// The labels that it asked for.
    pub labels: Labels,
    /// The worker that had it.
    pub worker: WorkerId,
    /// That worker's name at the time.
    pub worker_name: String,
    /// How many GPUs it was granted.
    pub gpus: u32,
    /// When it was offered.
    pub offered: Timestamp,
    /// When the worker took it: from here on it counts. What was only offered counts for nobody.
    pub started: Option<Timestamp>,
    /// When it ended; none while it runs.
    pub ended: Option<Timestamp>,
}

impl Run {
    /// The time in the window for which it counts.
    pub fn part(&self, window: Window) -> Option<(Timestamp, Timestamp)> {
        window.part(self.started?, self.ended)
    }
}

/// What groups are made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Who submitted the job.
    User,
    /// A label that the job asked for; a job with several is in each of their groups.
    Label,
    /// The worker that had the attempt.
    Worker,
    /// The job's configuration.
    Config,
}

/// How much was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Time that GPUs were held, each counted.
    pub gpus: Millis,
    /// Time that attempts ran, each counted, with GPUs or without.
    pub runs: Millis,
    /// Jobs that had an attempt.
    pub jobs: u64,
    /// Attempts.
    pub attempts: u64,
}

/// The name of a group, and the worker, if it is one. An empty name is of jobs that ask for no label.
pub type Key = (String, Option<WorkerId>);

/// How much was used in the window: in all, and in groups, the largest first.
pub fn used(runs: &[Run], window: Window, by: By) -> (Amount, Vec<(Key, Amount)>) {
    let (mut total, mut groups) = (Tally::default(), BTreeMap::<Key, Tally<'_>>::new());
    for run in runs {
        let Some((from, until)) = run.part(window) else { continue };
        total.add(run, until - from);
        for key in keys(run, by) {
            groups.entry(key).or_default().add(run, until - from);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(key, tally)| (key, tally.amount())).collect();
    groups.sort_by_key(|(_, amount)| std::cmp::Reverse((amount.gpus, amount.runs)));
    (total.amount(), groups)
}

fn keys(run: &Run, by: By) -> Vec<Key> {
    let one = |name: &str, worker: Option<&WorkerId>| vec![(name.to_owned(), worker.cloned())];
    match by {
        By::User => one(&run.user, None),
        By::Config => one(&run.config, None),
        // A worker that was renamed is still the same one; of two with one name after the other each has its own.
        By::Worker => one(&run.worker_name, Some(&run.worker)),
        By::Label if run.labels.0.is_empty() => one("", None),
        By::Label => run.labels.0.iter().map(|(key, value)| (format!("{key}={value}"), None)).collect(),
    }
}

#[derive(Default)]
struct Tally<'r> {
    amount: Amount,
    jobs: BTreeSet<&'r JobId>,
}

impl<'r> Tally<'r> {
    fn add(&mut self, run: &'r Run, span: Millis) {
        self.amount.gpus.0 += span.0 * i64::from(run.gpus);
        self.amount.runs.0 += span.0;
        self.amount.attempts += 1;
        self.jobs.insert(&run.job);
    }

    fn amount(&self) -> Amount {
        Amount { jobs: self.jobs.len() as u64, ..self.amount }
    }
}

/// How a job waited for its first worker. Pauses between attempts are no waiting: they are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was first offered.
    pub offered: Option<Timestamp>,
    /// When a worker first took it.
    pub started: Option<Timestamp>,
    /// When it ended, if it has.
    pub ended: Option<Timestamp>,
}

impl Wait {
    /// Until when it waited for an offer; none if it still does.
    pub fn over(&self) -> Option<Timestamp> {
        self.offered.or(self.ended)
    }
}

/// How long those waited that a worker first took within the window, the shortest first.
pub fn waits(all: &[Wait], window: Window) -> Vec<Millis> {
    let inside = |wait: &&Wait| wait.started.is_some_and(|at| window.since <= at && at < window.until);
    let span = |wait: &Wait| wait.started.map(|started| Millis((started - wait.submitted).0.max(0)));
    let mut waits: Vec<Millis> = all.iter().filter(inside).filter_map(span).collect();
    waits.sort_unstable();
    waits
}

/// What this share of 100 does not go beyond: the nearest rank, which is one of them.
pub fn percentile(sorted: &[Millis], percent: usize) -> Option<Millis> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
