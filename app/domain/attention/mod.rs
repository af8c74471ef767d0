//! What of the fleet somebody should look at, and how urgent it is.
//!
//! Only what is known is told: where nobody knows since when it is so, no moment is given.

mod stuck;
#[cfg(test)]
mod tests;

pub use self::stuck::stuck;
use super::explain::Summary;
use super::gpu::{Gpu, WithheldReason};
use super::ids::{JobId, WorkerId};
use super::time::{Millis, Timestamp};
use super::worker::credential::Credential;
use super::worker::{Link, Worker};

/// So many entries are told; of the rest the number.
pub const MOST: usize = 20;
/// A drain that lasts longer was forgotten, or waits for something.
const LONG_DRAIN: Millis = Millis::seconds(3_600);
/// From when on a token's end is announced.
const SOON: Millis = Millis::seconds(7 * 86_400);
/// A token that is older is due for another one.
const OLD_TOKEN: Millis = Millis::seconds(90 * 86_400);
/// Of what is only worth knowing, so many workers are named; more are one entry.
const NAMED: usize = 3;

/// How urgent it is; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Work is lost or refused, or a secret is in other hands.
    Alarm,
    /// Something does not do what it is there for.
    Warning,
    /// Worth knowing.
    Note,
}

/// What somebody should look at.
#[derive(Debug, Clone, PartialEq)]
pub enum Concern {
    /// The server's disk is almost full: no new jobs are taken.
    DiskFull,
    /// Signed checkpoints of the audit trail do not reach the place where they are kept.
    AuditNotShipped,
    /// A second agent came with the worker's token.
    TokenShared {
        /// From which host; empty if that is not known.
        host: String,
    },
    /// The worker's token has ended.
    TokenEnded,
    /// The worker went offline while it had this job, which waits or is being stopped since.
    Offline {
        /// The job.
        job: JobId,
    },
    /// Attempts on the worker failed one after the other, each soon after it began.
    FastFailures {
        /// How many, since one went well.
        attempts: u64,
    },
    /// Jobs that ask for the same wait, and no worker takes them unless somebody does something.
    Stuck {
        /// How many.
        jobs: u64,
        /// How many workers are left after each thing that they ask for; none if there are no workers.
        summary: Option<Summary>,
    },
    /// So do others, which ask for something else.
    MoreStuck {
        /// How many.
        jobs: u64,
    },
    /// GPUs of the worker showed errors, and are given to no job.
    GpusWithheld {
        /// How many.
        gpus: u64,
        /// The first one's number on its host.
        first: u32,
        /// What its agent says of it.
        detail: String,
    },
    /// The worker takes no new job, in its agent's words.
    Unfit {
        /// Why.
        why: String,
    },
    /// The drain's deadline has passed, and the worker still has a job.
    DrainOverdue,
    /// The worker's token ends soon.
    TokenEnds {
        /// When.
        at: Timestamp,
    },
    /// The worker's agent does not verify the server's certificate.
    Unverified,
    /// The worker drains for long.
    DrainLong,
    /// The worker's agent is older than the server.
    AgentBehind {
        /// Its version.
        version: String,
    },
    /// The worker has had its token for long.
    TokenOld,
}

/// Whom or what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The server.
    Server,
    /// A worker.
    Worker(WorkerId, String),
    /// Several workers.
    Workers(u64),
    /// A job, with its configuration's name; of several the one that has waited for longest.
    Job(JobId, String),
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What.
    pub concern: Concern,
    /// Of whom.
    pub about: About,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
}

/// The list, bounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attention {
    /// The most urgent first, of those the oldest.
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub more: u64,
}

impl Concern {
    /// How urgent it is.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DiskFull
            | Self::TokenShared { .. }
            | Self::TokenEnded
            | Self::Offline { .. }
            | Self::FastFailures { .. } => Severity::Alarm,
            Self::AuditNotShipped
            | Self::Stuck { .. }
            | Self::MoreStuck { .. }
            | Self::GpusWithheld { .. }
            | Self::Unfit { .. }
            | Self::DrainOverdue
            | Self::TokenEnds { .. }
            | Self::Unverified => Severity::Warning,
            Self::DrainLong | Self::AgentBehind { .. } | Self::TokenOld => Severity::Note,
        }
    }
}

/// A worker, with what is known of it beside its own state.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// What opens the API for its agent.
    pub credential: &'w Credential,
    /// A job that it holds, or that was lost with it and waits.
    pub job: Option<&'w JobId>,
}

/// What there is to look at of a worker. `newest` is the server's own version.
pub fn of_worker(subject: Subject<'_>, newest: &str, now: Timestamp) -> Vec<Entry> {
    let worker = subject.worker;
    let entry = |concern, since| Entry { concern, about: About::Worker(worker.id.clone(), worker.name.clone()), since };
    let found = [contact(subject), conflict(worker), token(subject, now), drain(subject, now)];
    let found = found.into_iter().flatten().chain(capability(worker, newest));
    found.map(|(concern, since)| entry(concern, since)).collect()
}

type Found = (Concern, Option<Timestamp>);

fn contact(subject: Subject<'_>) -> Option<Found> {
    let Link::Offline { since, .. } = &subject.worker.link else { return None };
    Some((Concern::Offline { job: subject.job?.clone() }, Some(*since)))
}

fn conflict(worker: &Worker) -> Option<Found> {
    let conflict = worker.conflict.as_ref()?;
    Some((Concern::TokenShared { host: conflict.host.clone() }, Some(conflict.at)))
}

/// One whose work is done needs no token, and the server sees to that of its own machine.
fn token(Subject { worker, credential, .. }: Subject<'_>, now: Timestamp) -> Option<Found> {
    if worker.spent.is_some() || worker.local {
        return None;
    }
    let old = || credential.made_at.filter(|made| now - *made > OLD_TOKEN);
    match credential.expires_at {
        Some(end) if end <= now => Some((Concern::TokenEnded, Some(end))),
        Some(at) if at - now < SOON => Some((Concern::TokenEnds { at }, None)),
        _ => old().map(|made| (Concern::TokenOld, Some(made))),
    }
}

fn drain(Subject { worker, job, .. }: Subject<'_>, now: Timestamp) -> Option<Found> {
    // Of one that is not there nobody waits for the drain's end.
    present(worker)?;
    let drain = worker.drain.as_ref()?;
    match drain.deadline {
        Some(deadline) if deadline <= now && job.is_some() => Some((Concern::DrainOverdue, Some(deadline))),
        _ => (now - drain.since > LONG_DRAIN).then_some((Concern::DrainLong, Some(drain.since))),
    }
}

fn present(worker: &Worker) -> Option<&super::capability::Capability> {
    match &worker.link {
        Link::Connecting { capability, .. } | Link::Online { capability, .. } => Some(capability),
        Link::NeverSeen | Link::Offline { .. } => None,
    }
}

/// What its agent has reported, while it is there.
fn capability(worker: &Worker, newest: &str) -> Vec<Found> {
    let Some(capability) = present(worker) else { return Vec::new() };
    // What older agents call their version is that of another program.
    let version =
        capability.agent_version.as_ref().filter(|version| !capability.is_older() && is_behind(version, newest));
    let unfit = capability.unfit.clone().map(|why| Concern::Unfit { why });
    let unverified = (capability.tls_verify == Some(false)).then_some(Concern::Unverified);
    let behind = version.map(|version| Concern::AgentBehind { version: version.clone() });
    let found = [gpus(&capability.gpus), unfit, unverified, behind];
    found.into_iter().flatten().map(|concern| (concern, None)).collect()
}

/// GPUs with an error; that somebody else uses one is no error.
fn gpus(all: &[Gpu]) -> Option<Concern> {
    let broken = |gpu: &Gpu| {
        let why = gpu.withheld.as_ref().filter(|withheld| withheld.reason == WithheldReason::Quarantined)?;
        Some((gpu.index, why.detail.clone()))
    };
    let mut broken = all.iter().filter_map(broken);
    let (first, detail) = broken.next()?;
    Some(Concern::GpusWithheld { gpus: broken.count() as u64 + 1, first, detail })
}

/// Whether a version is an earlier one. What is no version is not judged.
fn is_behind(version: &str, newest: &str) -> bool {
    let numbers = |text: &str| {
        let core = text.split(['-', '+']).next()?;
        core.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()
    };
    matches!((numbers(version), numbers(newest)), (Some(version), Some(newest)) if version < newest)
}

/// The list: sorted, what is only worth knowing of many workers as one entry, and no longer than [`MOST`].
pub fn list(entries: Vec<Entry>) -> Attention {
    let mut entries = gathered(entries);
    entries.sort_by_key(|entry| (entry.concern.severity(), entry.since.is_none(), entry.since));
    let more = entries.len().saturating_sub(MOST) as u64;
    entries.truncate(MOST);
    Attention { entries, more }
}

/// Whether two say the same of two workers, so that they can be counted.
fn alike(a: &Entry, b: &Entry) -> bool {
    std::mem::discriminant(&a.concern) == std::mem::discriminant(&b.concern)
}

fn gathered(entries: Vec<Entry>) -> Vec<Entry> {
    let (notes, mut entries): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.concern.severity() == Severity::Note);
    let mut groups: Vec<Vec<Entry>> = Vec::new();
    for note in notes {
        match groups.iter_mut().find(|group| alike(&group[0], &note)) {
            Some(group) => group.push(note),
            None => groups.push(vec![note]),
        }
    }
    for mut group in groups {
        let many = group.len();
        if many > NAMED {
            // The one that is so for longest stands for all.
            group.sort_by_key(|entry| (entry.since.is_none(), entry.since));
            group.truncate(1);
            group[0].about = About::Workers(many as u64);
        }
        entries.append(&mut group);
    }
    entries
}
