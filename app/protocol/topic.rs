//! Topics of change notifications. A notification is a hint; the receiver requests the data again.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{JobId, UserId, WorkerId};

/// A topic, as text: `workers`, `worker:w_…`, `jobs`, `job:j_…`, `progress:j_…`, `log:j_…`, `configs`, `gpus`,
/// `secrets`, `account`, `audit`, `access:u_…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The list of workers.
    Workers,
    /// One worker, including its desired state.
    Worker(WorkerId),
    /// The list of jobs.
    Jobs,
    /// One job: its state and artifacts.
    Job(JobId),
    /// The metrics of one job, which change every few seconds.
    Progress(JobId),
    /// The log of one job.
    Log(JobId),
    /// The list of configurations.
    Configs,
    /// The readings of all GPUs.
    Gpus,
    /// The shared secrets.
    Secrets,
    /// The receiver's own password, tokens, sessions and secrets.
    Account,
    /// The audit log, and so everything that users can change: users, secrets, settings.
    AuditLog,
    /// A user's access: password, tokens, sessions, role and secrets. That user receives it as [`Topic::Account`].
    Access(UserId),
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Workers => f.write_str("workers"),
            Self::Worker(id) => write!(f, "worker:{id}"),
            Self::Jobs => f.write_str("jobs"),
            Self::Job(id) => write!(f, "job:{id}"),
            Self::Progress(id) => write!(f, "progress:{id}"),
            Self::Log(id) => write!(f, "log:{id}"),
            Self::Configs => f.write_str("configs"),
            Self::Gpus => f.write_str("gpus"),
            Self::Secrets => f.write_str("secrets"),
            Self::Account => f.write_str("account"),
            Self::AuditLog => f.write_str("audit"),
            Self::Access(id) => write!(f, "access:{id}"),
        }
    }
}

impl Topic {
    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => match text {
                "workers" => Some(Self::Workers),
                "jobs" => Some(Self::Jobs),
                "configs" => Some(Self::Configs),
                "gpus" => Some(Self::Gpus),
                "secrets" => Some(Self::Secrets),
                "account" => Some(Self::Account),
                "audit" => Some(Self::AuditLog),
                _ => None,
            },
            Some(("worker", id)) => WorkerId::parse(id).ok().map(Self::Worker),
            Some(("job", id)) => JobId::parse(id).ok().map(Self::Job),
            Some(("progress", id)) => JobId::parse(id).ok().map(Self::Progress),
            Some(("log", id)) => JobId::parse(id).ok().map(Self::Log),
            Some(("access", id)) => UserId::parse(id).ok().map(Self::Access),
            Some(_) => None,
        }
    }
}

/// The `data:` of a message on `GET /api/events`: these topics changed, the newest at this version.
///
/// `resync` means that everything may have changed: the receiver missed more than the server remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopicsChanged {
    /// The version to resume after, with the server's epoch: `<epoch>-<n>`.
    pub version: String,
    /// The topics, as text.
    pub topics: Vec<String>,
    /// Whether to request everything again.
    #[serde(default)]
    pub resync: bool,
}
