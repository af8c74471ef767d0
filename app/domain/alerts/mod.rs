//! Alerts: conditions of the fleet that need attention, and their severity.
//!
//! Alerts contain only known facts: if the start of a condition is unknown, no time is given.

mod stuck_jobs;
#[cfg(test)]
mod tests;

pub use self::stuck_jobs::stuck_job_alerts;
use super::explain::FitSummary;
use super::gpu::{Gpu, UnavailableReason};
use super::ids::{JobId, WorkerId};
use super::time::{Millis, Timestamp};
use super::worker::credential::WorkerCredential;
use super::worker::{ConnectionState, Worker};

/// Maximum number of listed alerts; the rest is only counted.
pub const MAX_ALERTS: usize = 20;
/// Maximum number of jobs that an alert names; the rest is only counted.
pub const MAX_NAMED_JOBS: usize = 20;
/// A drain that lasts longer may have been forgotten.
const LONG_DRAIN: Millis = Millis::from_secs(3_600);
/// How long before its expiry a token raises an alert.
const TOKEN_EXPIRY_NOTICE: Millis = Millis::from_secs(7 * 86_400);
/// A token that is older should be rotated.
const MAX_TOKEN_AGE: Millis = Millis::from_secs(90 * 86_400);
/// Informational alerts of the same kind name at most this many workers; more become one alert.
const MAX_NAMED_WORKERS: usize = 3;

/// The severity, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Work is lost or rejected, or a token may be compromised.
    Critical,
    /// Something does not work as intended.
    Warning,
    /// For information.
    Info,
}

/// The kind of an alert.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertKind {
    /// The server's disk is almost full: new jobs are rejected.
    DiskFull,
    /// Signed checkpoints of the audit log cannot be shipped.
    AuditNotShipped,
    /// A second agent used the worker's token.
    TokenShared {
        /// Its host; empty if unknown.
        host: String,
    },
    /// The worker's token has expired.
    TokenExpired,
    /// The worker is offline; these jobs were lost with it and do not run elsewhere yet.
    OfflineWithJob {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// The worker fell silent while it ran these jobs, and has not returned. The jobs run elsewhere, or have ended.
    Offline {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// Several attempts in a row failed on the worker, each soon after its start.
    FastFailures {
        /// Number of failures since the last success.
        attempts: u64,
    },
    /// Jobs with the same requirements are pending, and no worker will run them without an admin's action.
    Stuck {
        /// Number of jobs.
        jobs: u64,
        /// Number of workers left after each requirement; none if there are no workers.
        summary: Option<FitSummary>,
    },
    /// Jobs with other requirements are stuck too.
    MoreStuck {
        /// Number of jobs.
        jobs: u64,
    },
    /// GPUs of the worker had errors and are quarantined.
    GpusUnavailable {
        /// Number of GPUs.
        gpus: u64,
        /// Index of the first one.
        first: u32,
        /// Its agent's details.
        detail: String,
    },
    /// The worker accepts no new jobs, as reported by its agent.
    HostUnhealthy {
        /// The reason.
        why: String,
    },
    /// The worker is not connected, and its agent's registration was rejected.
    RegistrationRejected {
        /// The code of the problem in the response.
        reason: String,
    },
    /// The drain's deadline has passed, but the worker still has a job.
    DrainOverdue,
    /// The worker's token expires soon.
    TokenExpiring {
        /// When it expires.
        at: Timestamp,
    },
    /// The worker's agent does not verify the server's certificate.
    TlsUnverified,
    /// The worker has been draining for a long time.
    DrainLong,
    /// The worker's agent is older than the server.
    AgentOutdated {
        /// The agent's version.
        version: String,
    },
    /// The worker's token is old.
    TokenOld,
}

/// The subject of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertSubject {
    /// The server.
    Server,
    /// A worker.
    Worker(WorkerId, String),
    /// Several workers: their number.
    Workers(u64),
    /// A job and the name of its configuration; for several jobs, the one that has waited longest.
    Job(JobId, String),
}

/// An alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// The kind.
    pub kind: AlertKind,
    /// The subject.
    pub subject: AlertSubject,
    /// Since when, if known.
    pub since: Option<Timestamp>,
}

/// A limited list of alerts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertList {
    /// The alerts: most severe first, then oldest first.
    pub alerts: Vec<Alert>,
    /// Number of further alerts.
    pub more: u64,
}

impl AlertKind {
    /// Returns the severity.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DiskFull
            | Self::TokenShared { .. }
            | Self::TokenExpired
            | Self::OfflineWithJob { .. }
            | Self::FastFailures { .. } => Severity::Critical,
            Self::AuditNotShipped
            | Self::Stuck { .. }
            | Self::MoreStuck { .. }
            | Self::GpusUnavailable { .. }
            | Self::HostUnhealthy { .. }
            | Self::Offline { .. }
            | Self::RegistrationRejected { .. }
            | Self::DrainOverdue
            | Self::TokenExpiring { .. }
            | Self::TlsUnverified => Severity::Warning,
            Self::DrainLong | Self::AgentOutdated { .. } | Self::TokenOld => Severity::Info,
        }
    }
}

/// A rejected registration of a worker's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRegistration {
    /// When it happened.
    pub at: Timestamp,
    /// The code of the problem in the response.
    pub reason: String,
}

/// A worker and related data.
#[derive(Debug, Clone, Copy)]
pub struct WorkerContext<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// Its token.
    pub credential: &'w WorkerCredential,
    /// A job that it has.
    pub job: Option<&'w JobId>,
    /// The jobs that were lost when it went offline, and do not run elsewhere yet.
    pub waiting_jobs: &'w [JobId],
    /// The last rejected registration with its token or under its name, if it is recent.
    pub rejection: Option<&'w RejectedRegistration>,
}

/// Returns the alerts of a worker. `server_version` is the version of this server.
pub fn worker_alerts(subject: WorkerContext<'_>, server_version: &str, now: Timestamp) -> Vec<Alert> {
    let worker = subject.worker;
    let alert =
        |kind, since| Alert { kind, subject: AlertSubject::Worker(worker.id.clone(), worker.name.clone()), since };
    let found = [
        offline_alert(subject),
        token_conflict_alert(worker),
        token_alert(subject, now),
        rejection_alert(subject, now),
        drain_alert(subject, now),
    ];
    let found = found.into_iter().flatten().chain(capability_alerts(worker, server_version));
    found.map(|(kind, since)| alert(kind, since)).collect()
}

/// Returns a time before which the worker has no alerts, whatever job it has, if no lost jobs of it wait and no
/// registration was rejected. As it depends on nothing else, it can be stored: few workers of a large fleet have alerts.
pub fn no_alert_before(worker: &Worker, credential: &WorkerCredential, server_version: &str) -> Timestamp {
    let subject = WorkerContext { worker, credential, job: None, waiting_jobs: &[], rejection: None };
    let has_alert = offline_alert(subject).is_some()
        || token_conflict_alert(worker).is_some()
        || !capability_alerts(worker, server_version).is_empty();
    if has_alert {
        return Timestamp(i64::MIN);
    }
    let credential = Some(credential).filter(|_| needs_valid_token(worker));
    let token_expires = credential.and_then(|credential| credential.expires_at);
    let token_issued = credential.and_then(|credential| credential.issued_at);
    let drain = worker.drain.as_ref();
    let times = [
        token_expires.map(|end| end + Millis(-TOKEN_EXPIRY_NOTICE.0)),
        token_issued.map(|issued_at| issued_at + MAX_TOKEN_AGE),
        drain.and_then(|drain| drain.deadline),
        drain.map(|drain| drain.since + LONG_DRAIN),
    ];
    times.into_iter().flatten().min().unwrap_or(Timestamp(i64::MAX))
}

type DatedAlertKind = (AlertKind, Option<Timestamp>);

/// A worker that disconnects raises no alert while it may return to its job: an operator has stopped its agent. A
/// draining worker raises none if its lost jobs run elsewhere or have ended: an operator knows of the outage.
fn offline_alert(WorkerContext { worker, waiting_jobs, .. }: WorkerContext<'_>) -> Option<DatedAlertKind> {
    let ConnectionState::Offline { since, lost_jobs, .. } = &worker.connection else { return None };
    let kind = match waiting_jobs {
        [] if lost_jobs.is_empty() || worker.drain.is_some() => return None,
        [] => AlertKind::Offline { jobs: lost_jobs.clone() },
        waiting => AlertKind::OfflineWithJob { jobs: waiting.to_vec() },
    };
    Some((kind, Some(*since)))
}

fn token_conflict_alert(worker: &Worker) -> Option<DatedAlertKind> {
    let conflict = worker.token_conflict.as_ref()?;
    Some((AlertKind::TokenShared { host: conflict.host.clone() }, Some(conflict.at)))
}

/// Retired workers need no token, and the server manages the token of its local worker.
const fn needs_valid_token(worker: &Worker) -> bool {
    worker.retired_at.is_none() && !worker.local
}

fn token_alert(WorkerContext { worker, credential, .. }: WorkerContext<'_>, now: Timestamp) -> Option<DatedAlertKind> {
    if !needs_valid_token(worker) {
        return None;
    }
    let old = || credential.issued_at.filter(|issued_at| now - *issued_at > MAX_TOKEN_AGE);
    match credential.expires_at {
        Some(end) if end <= now => Some((AlertKind::TokenExpired, Some(end))),
        Some(at) if at - now < TOKEN_EXPIRY_NOTICE => Some((AlertKind::TokenExpiring { at }, None)),
        _ => old().map(|issued_at| (AlertKind::TokenOld, Some(issued_at))),
    }
}

/// A registration ends this alert, and so does a newer token. For an expired token there is another alert.
fn rejection_alert(subject: WorkerContext<'_>, now: Timestamp) -> Option<DatedAlertKind> {
    let WorkerContext { worker, credential, rejection, .. } = subject;
    let rejection = rejection.filter(|_| connected_capability(worker).is_none())?;
    let is_resolved = rejection.at < worker.connection_since()
        || credential.issued_at.is_some_and(|issued_at| rejection.at < issued_at)
        || credential.expires_at.is_some_and(|end| end <= now);
    (!is_resolved).then(|| (AlertKind::RegistrationRejected { reason: rejection.reason.clone() }, None))
}

fn drain_alert(WorkerContext { worker, job, .. }: WorkerContext<'_>, now: Timestamp) -> Option<DatedAlertKind> {
    // A worker that is not connected cannot finish its drain.
    connected_capability(worker)?;
    let drain = worker.drain.as_ref()?;
    match drain.deadline {
        Some(deadline) if deadline <= now && job.is_some() => Some((AlertKind::DrainOverdue, Some(deadline))),
        _ => (now - drain.since > LONG_DRAIN).then_some((AlertKind::DrainLong, Some(drain.since))),
    }
}

fn connected_capability(worker: &Worker) -> Option<&super::capability::Capability> {
    match &worker.connection {
        ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } => Some(capability),
        ConnectionState::NeverConnected | ConnectionState::Offline { .. } => None,
    }
}

/// Alerts from the reports of a connected agent.
fn capability_alerts(worker: &Worker, server_version: &str) -> Vec<DatedAlertKind> {
    let Some(capability) = connected_capability(worker) else { return Vec::new() };
    // The version that older agents report is that of another program.
    let version = capability
        .agent_version
        .as_ref()
        .filter(|version| !capability.is_older_agent() && is_older_version(version, server_version));
    let unhealthy = capability.unhealthy_reason.clone().map(|why| AlertKind::HostUnhealthy { why });
    let unverified = (capability.tls_verify == Some(false)).then_some(AlertKind::TlsUnverified);
    let outdated = version.map(|version| AlertKind::AgentOutdated { version: version.clone() });
    let found = [unavailable_gpus_alert(&capability.gpus), unhealthy, unverified, outdated];
    found.into_iter().flatten().map(|kind| (kind, None)).collect()
}

/// Quarantined GPUs only: use by another process is not an error.
fn unavailable_gpus_alert(all: &[Gpu]) -> Option<AlertKind> {
    let quarantined = |gpu: &Gpu| {
        let quarantine =
            gpu.unavailable.as_ref().filter(|unavailable| unavailable.reason == UnavailableReason::Quarantined)?;
        Some((gpu.index, quarantine.detail.clone()))
    };
    let mut quarantined = all.iter().filter_map(quarantined);
    let (first, detail) = quarantined.next()?;
    Some(AlertKind::GpusUnavailable { gpus: quarantined.count() as u64 + 1, first, detail })
}

/// Returns whether a version is older. Invalid versions are not compared.
fn is_older_version(version: &str, newest: &str) -> bool {
    let numbers = |text: &str| {
        let core = text.split(['-', '+']).next()?;
        core.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()
    };
    matches!((numbers(version), numbers(newest)), (Some(version), Some(newest)) if version < newest)
}

/// Builds the list: sorted, with informational alerts of the same kind on many workers combined, and at most
/// [`MAX_ALERTS`] long.
pub fn build_list(alerts: Vec<Alert>) -> AlertList {
    let mut alerts = group_infos(alerts);
    alerts.sort_by_key(|alert| (alert.kind.severity(), alert.since.is_none(), alert.since));
    let more = alerts.len().saturating_sub(MAX_ALERTS) as u64;
    alerts.truncate(MAX_ALERTS);
    AlertList { alerts, more }
}

/// Returns whether two alerts differ only in the worker, so that they can be combined.
fn is_same_kind(a: &Alert, b: &Alert) -> bool {
    std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind)
}

fn group_infos(alerts: Vec<Alert>) -> Vec<Alert> {
    let (infos, mut alerts): (Vec<_>, Vec<_>) =
        alerts.into_iter().partition(|alert| alert.kind.severity() == Severity::Info);
    let mut groups: Vec<Vec<Alert>> = Vec::new();
    for info in infos {
        match groups.iter_mut().find(|group| is_same_kind(&group[0], &info)) {
            Some(group) => group.push(info),
            None => groups.push(vec![info]),
        }
    }
    for mut group in groups {
        let worker_count = group.len();
        if worker_count > MAX_NAMED_WORKERS {
            // The oldest alert represents the group.
            group.sort_by_key(|alert| (alert.since.is_none(), alert.since));
            group.truncate(1);
            group[0].subject = AlertSubject::Workers(worker_count as u64);
        }
        alerts.append(&mut group);
    }
    alerts
}
