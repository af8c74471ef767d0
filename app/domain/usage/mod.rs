//! GPU usage of the fleet in a period: who used how many GPUs for how long, how long jobs waited, and when workers were
//! idle while jobs were pending.

pub mod calendar;
pub mod presence;
pub mod spans;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{JobId, WorkerId};
use super::labels::Labels;
use super::time::{Millis, Timestamp};

/// A period; everything outside is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// Start.
    pub since: Timestamp,
    /// End, exclusive.
    pub until: Timestamp,
}

impl TimeWindow {
    /// Returns the part of a span within the period; a span without an end continues.
    pub fn clip(self, from: Timestamp, until: Option<Timestamp>) -> Option<(Timestamp, Timestamp)> {
        let (from, until) = (from.max(self.since), until.unwrap_or(self.until).min(self.until));
        (from < until).then_some((from, until))
    }
}

/// The usage of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptUsage {
    /// The job.
    pub job: JobId,
    /// Who submitted it.
    pub user: String,
    /// The name of its configuration.
    pub config_name: String,
    /// The labels that it required.
    pub labels: Labels,
    /// Its worker.
    pub worker: WorkerId,
    /// The worker's name at that time.
    pub worker_name: String,
    /// Number of GPUs allocated to it.
    pub gpus: u32,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker accepted it: usage counts from here. Offers do not count.
    pub started_at: Option<Timestamp>,
    /// When it ended; none while it runs.
    pub ended_at: Option<Timestamp>,
}

impl AttemptUsage {
    /// Returns the part of its run time within the period.
    pub fn clip_to(&self, window: TimeWindow) -> Option<(Timestamp, Timestamp)> {
        window.clip(self.started_at?, self.ended_at)
    }
}

/// How usage is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    /// By the user who submitted the job.
    User,
    /// By label that the job required; a job with several labels is in each of their groups.
    Label,
    /// By the attempt's worker.
    Worker,
    /// By the job's configuration.
    Config,
}

/// An amount of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageAmount {
    /// Time for which GPUs were allocated, summed over GPUs.
    pub gpu_time: Millis,
    /// Time for which attempts ran, summed over attempts, with or without GPUs.
    pub run_time: Millis,
    /// Number of jobs with an attempt.
    pub jobs: u64,
    /// Number of attempts.
    pub attempts: u64,
}

/// The name of a group, and the worker if grouped by worker. The name is empty for jobs without labels.
pub type UsageGroupKey = (String, Option<WorkerId>);

/// Returns the usage in the period: in total, and by group, the largest first.
pub fn summarize_usage(
    runs: &[AttemptUsage],
    window: TimeWindow,
    by: UsageGrouping,
) -> (UsageAmount, Vec<(UsageGroupKey, UsageAmount)>) {
    let (mut total, mut groups) = (UsageTally::default(), BTreeMap::<UsageGroupKey, UsageTally<'_>>::new());
    for run in runs {
        let Some((from, until)) = run.clip_to(window) else { continue };
        total.add(run, until - from);
        for key in group_keys(run, by) {
            groups.entry(key).or_default().add(run, until - from);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(key, tally)| (key, tally.amount())).collect();
    groups.sort_by_key(|(_, amount)| std::cmp::Reverse((amount.gpu_time, amount.run_time)));
    (total.amount(), groups)
}

fn group_keys(run: &AttemptUsage, by: UsageGrouping) -> Vec<UsageGroupKey> {
    let single_key = |name: &str, worker: Option<&WorkerId>| vec![(name.to_owned(), worker.cloned())];
    match by {
        UsageGrouping::User => single_key(&run.user, None),
        UsageGrouping::Config => single_key(&run.config_name, None),
        // A renamed worker is one group; two workers that had the same name one after the other are two.
        UsageGrouping::Worker => single_key(&run.worker_name, Some(&run.worker)),
        UsageGrouping::Label if run.labels.0.is_empty() => single_key("", None),
        UsageGrouping::Label => run.labels.0.iter().map(|(key, value)| (format!("{key}={value}"), None)).collect(),
    }
}

#[derive(Default)]
struct UsageTally<'r> {
    amount: UsageAmount,
    jobs: BTreeSet<&'r JobId>,
}

impl<'r> UsageTally<'r> {
    fn add(&mut self, run: &'r AttemptUsage, span: Millis) {
        self.amount.gpu_time.0 += span.0 * i64::from(run.gpus);
        self.amount.run_time.0 += span.0;
        self.amount.attempts += 1;
        self.jobs.insert(&run.job);
    }

    fn amount(&self) -> UsageAmount {
        UsageAmount { jobs: self.jobs.len() as u64, ..self.amount }
    }
}

/// The wait of a job for its first worker. Pauses between attempts do not count, because they are intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWait {
    /// When the job was submitted.
    pub submitted_at: Timestamp,
    /// When it was first offered.
    pub offered_at: Option<Timestamp>,
    /// When a worker first accepted it.
    pub started_at: Option<Timestamp>,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
}

impl JobWait {
    /// Returns until when it waited for an offer; none if it still waits.
    pub fn waited_until(&self) -> Option<Timestamp> {
        self.offered_at.or(self.ended_at)
    }
}

/// Returns the waiting times of jobs that a worker first accepted in the period, the shortest first.
pub fn wait_times(jobs: &[JobWait], window: TimeWindow) -> Vec<Millis> {
    let is_in_window = |wait: &&JobWait| wait.started_at.is_some_and(|at| window.since <= at && at < window.until);
    let wait_time = |wait: &JobWait| wait.started_at.map(|started| Millis((started - wait.submitted_at).0.max(0)));
    let mut waits: Vec<Millis> = jobs.iter().filter(is_in_window).filter_map(wait_time).collect();
    waits.sort_unstable();
    waits
}

/// Returns the percentile by nearest rank: one of the values.
pub fn percentile(sorted: &[Millis], percent: usize) -> Option<Millis> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
