//! The fleet at a glance, from memory: what is asked of the database is few rows, however large the fleet is.

use std::collections::HashMap;

use app::domain::attention::{self, About, Concern, Entry, Severity, Subject};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, Loss, Previous, State};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Status;
use app::protocol::gpus::GpuCounts;
use app::protocol::overview::{self, AttentionKind, AttentionView, JobsNow, OverviewView, WaitingJob};
use app::protocol::status::{JobStatus, Phase};
use app::protocol::workers::WorkerCounts;

use super::gpus::states;
use super::summary;
use super::workers::{held, status};
use crate::service::Core;
use crate::service::access::Person;
use crate::service::refusal::Refusal;
use crate::store::known::Known;
use crate::store::usage::{Failing, Streak};
use crate::store::workers::StoredWorker;

/// So many workers are told.
const FLEET: usize = 12;
/// What ended so long ago counts as lately.
pub(super) const DAY: Millis = Millis::seconds(86_400);
/// An attempt that failed sooner after its start has not failed by what it computed.
const QUICK: Millis = Millis::seconds(60);
/// So many such failures in a row are one too many.
const REPEATED: u64 = 3;
/// At least so many failures in a row, lately and at once.
pub(super) fn streak(now: Timestamp, least: u64) -> Streak {
    Streak { since: Timestamp(now.0 - DAY.0), now, quick: QUICK, least }
}

/// What is seen in one look.
struct Survey {
    workers: WorkerCounts,
    gpus: GpuCounts,
    jobs: JobsNow,
    entries: Vec<Entry>,
    fleet: Vec<StoredWorker>,
    /// The jobs that those workers hold.
    leased: Vec<Job>,
}

impl Core {
    /// How the fleet stands, with the jobs that somebody may see.
    pub async fn overview(&self, person: &Person) -> Result<OverviewView, Refusal> {
        let now = self.now();
        let (since, own) = (Timestamp(now.0 - DAY.0), person.sees_only());
        let mut tx = self.recent().await?;
        let failing = tx.failing(streak(now, REPEATED), None).await?;
        let ended = tx.ended_since(since, own.as_deref()).await?;
        drop(tx);
        let mut tx = self.recent().await?;
        let survey = tx.see(|known| self.survey(known, failing, own.as_deref())).await?;
        let mut held = held(&mut *tx, &survey.leased.iter().collect::<Vec<_>>()).await?;
        drop(tx);
        let shown =
            |stored: &StoredWorker| self.worker_view(stored, held.remove(&stored.worker.id).unwrap_or_default());
        let lately =
            |status: JobStatus| ended.iter().find(|(word, _)| word == status.as_str()).map_or(0, |(_, number)| *number);
        let attention = attention::list(survey.entries);
        Ok(OverviewView {
            workers: survey.workers,
            gpus: survey.gpus,
            jobs: JobsNow {
                completed_in_24h: lately(JobStatus::Completed),
                failed_in_24h: lately(JobStatus::Failed),
                ..survey.jobs
            },
            disk_full: self.room.is_full(),
            attention: attention.entries.into_iter().map(view).collect(),
            more_attention: attention.more,
            fleet: survey.fleet.iter().map(shown).collect(),
            server_time: now,
        })
    }

    fn survey(&self, known: &Known, failing: Vec<Failing>, own: Option<&str>) -> Survey {
        let now = self.now();
        let mut failing: HashMap<WorkerId, Failing> =
            failing.into_iter().map(|failing| (failing.worker.clone(), failing)).collect();
        let lost = lost(known);
        let (mut workers, mut gpus, mut entries) = (WorkerCounts::default(), GpuCounts::default(), Vec::new());
        let mut ranked = Vec::new();
        for stored in known.workers() {
            let worker = &stored.worker;
            let leased = known.leased(Some(&worker.id));
            let standing = worker.status(leased.len());
            workers.add(status(standing));
            states(worker, &leased).for_each(|(_, state)| gpus.add(state));
            let job = leased.first().map(|job| &job.id).or_else(|| lost.get(&worker.id).copied());
            let subject = Subject { worker, credential: &stored.credential, job };
            let mut found = attention::of_worker(subject, env!("CARGO_PKG_VERSION"), now);
            found.extend(failing.remove(&worker.id).map(|failing| Entry {
                concern: Concern::FastFailures { attempts: failing.attempts },
                about: About::Worker(worker.id.clone(), worker.name.clone()),
                since: Some(failing.since),
            }));
            let worst = found.iter().map(|entry| entry.concern.severity()).min();
            ranked.push(((worst.is_none(), worst, place(standing), &worker.name), stored));
            entries.append(&mut found);
        }
        let fleet = first(ranked);
        let leased = fleet.iter().flat_map(|stored| known.leased(Some(&stored.worker.id))).cloned().collect();
        entries.extend(self.stuck(known, own));
        let full = self.room.full_since();
        entries.extend(full.map(|since| Entry {
            concern: Concern::DiskFull,
            about: About::Server,
            since: Some(since),
        }));
        let unshipped = self.metrics.shipping.failing_since();
        entries.extend(unshipped.map(|since| Entry {
            concern: Concern::AuditNotShipped,
            about: About::Server,
            since: Some(since),
        }));
        Survey { workers, gpus, jobs: jobs(known, own), entries, fleet, leased }
    }

    /// The jobs that no worker takes, unless somebody does something.
    fn stuck(&self, known: &Known, own: Option<&str>) -> Vec<Entry> {
        let mut outlooks = self.outlooks(known);
        attention::stuck(known.waiting().filter(|job| sees(own, job)), &mut outlooks, self.now())
    }
}

fn sees(own: Option<&str>, job: &Job) -> bool {
    own.is_none_or(|name| job.submitted_by == name)
}

/// The jobs that wait because the worker that had them went offline.
fn lost(known: &Known) -> HashMap<WorkerId, &JobId> {
    let of = |job: &Job| match &job.state {
        State::Queued { previous: Some(Previous { lease, loss: Some(Loss::WorkerOffline) }), .. } => {
            Some(lease.worker.clone())
        }
        _ => None,
    };
    known.waiting().filter_map(|job| Some((of(job)?, &job.id))).collect()
}

/// Of workers that nobody has to look at, those that work come first.
const fn place(status: Status) -> u8 {
    match status {
        Status::Busy => 0,
        Status::Draining => 1,
        Status::Connecting => 2,
        Status::Idle => 3,
        Status::Offline => 4,
    }
}

/// The first workers, without the others being sorted.
fn first<K: Ord>(mut ranked: Vec<(K, &std::sync::Arc<StoredWorker>)>) -> Vec<StoredWorker> {
    if ranked.len() > FLEET {
        ranked.select_nth_unstable_by(FLEET, |a, b| a.0.cmp(&b.0));
        ranked.truncate(FLEET);
    }
    ranked.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    ranked.into_iter().map(|(_, stored)| StoredWorker::clone(stored)).collect()
}

fn jobs(known: &Known, own: Option<&str>) -> JobsNow {
    let mut now = JobsNow::default();
    let mut oldest: Option<&Job> = None;
    for job in known.jobs().map(std::sync::Arc::as_ref).filter(|job| sees(own, job)) {
        let waits = super::jobs::status(job).is_in(Phase::Waiting);
        *(if waits { &mut now.waiting } else { &mut now.running }) += 1;
        if waits && oldest.is_none_or(|before| (job.submitted_at, &job.id) < (before.submitted_at, &before.id)) {
            oldest = Some(job);
        }
    }
    now.oldest_waiting = oldest.map(|job| WaitingJob {
        job_id: job.id.clone(),
        config_name: job.spec.config_name.clone(),
        submitted_at: job.submitted_at,
    });
    now
}

fn view(entry: Entry) -> AttentionView {
    let severity = match entry.concern.severity() {
        Severity::Alarm => overview::Severity::Alarm,
        Severity::Warning => overview::Severity::Warning,
        Severity::Note => overview::Severity::Note,
    };
    let (worker_id, job_id, name, several) = match entry.about {
        About::Server => (None, None, None, None),
        About::Worker(id, name) => (Some(id), None, Some(name), None),
        About::Workers(number) => (None, None, None, Some(number)),
        About::Job(id, name) => (None, Some(id), Some(name), None),
    };
    let plain = |kind| AttentionView {
        kind,
        severity,
        since: entry.since,
        worker_id,
        job_id,
        name,
        count: several,
        summary: None,
        detail: None,
        at: None,
    };
    let told = |detail: String| Some(detail).filter(|detail| !detail.is_empty());
    match entry.concern {
        Concern::DiskFull => plain(AttentionKind::DiskFull),
        Concern::AuditNotShipped => plain(AttentionKind::AuditNotShipped),
        Concern::TokenShared { host } => AttentionView { detail: told(host), ..plain(AttentionKind::TokenShared) },
        Concern::TokenEnded => plain(AttentionKind::TokenEnded),
        Concern::Offline { job } => AttentionView { job_id: Some(job), ..plain(AttentionKind::OfflineWithJob) },
        Concern::FastFailures { attempts } => {
            AttentionView { count: Some(attempts), ..plain(AttentionKind::FastFailures) }
        }
        Concern::Stuck { jobs, summary } => {
            let summary = summary.as_ref().map(summary::view);
            AttentionView { count: Some(jobs), summary, ..plain(AttentionKind::Stuck) }
        }
        Concern::MoreStuck { jobs } => AttentionView { count: Some(jobs), ..plain(AttentionKind::MoreStuck) },
        Concern::GpusWithheld { gpus, first, detail } => {
            let detail = if detail.is_empty() { format!("GPU {first}") } else { format!("GPU {first}: {detail}") };
            AttentionView { count: Some(gpus), detail: Some(detail), ..plain(AttentionKind::GpusWithheld) }
        }
        Concern::Unfit { why } => AttentionView { detail: told(why), ..plain(AttentionKind::Unfit) },
        Concern::DrainOverdue => plain(AttentionKind::DrainOverdue),
        Concern::TokenEnds { at } => AttentionView { at: Some(at), ..plain(AttentionKind::TokenEnds) },
        Concern::Unverified => plain(AttentionKind::Unverified),
        Concern::DrainLong => plain(AttentionKind::DrainLong),
        Concern::AgentBehind { version } => {
            // Of several each has its own.
            let detail = several.is_none().then_some(version);
            AttentionView { detail, ..plain(AttentionKind::AgentBehind) }
        }
        Concern::TokenOld => plain(AttentionKind::TokenOld),
    }
}
