//! Topics: what a listener can be told has changed. The message is a hint; the change itself is asked for.

use serde::{Deserialize, Serialize};

use crate::domain::ids::{JobId, UserId, WorkerId};

/// Something that can change, as text: `workers`, `worker:w_…`, `jobs`, `job:j_…`, `log:j_…`, `configs`, `gpus`, `secrets`,
/// `account`, `trail`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The list of workers.
    Workers,
    /// One worker, its desired state included.
    Worker(WorkerId),
    /// The list of jobs.
    Jobs,
    /// One job: state, progress, artifacts.
    Job(JobId),
    /// The log of one job.
    Log(JobId),
    /// The list of configurations.
    Configs,
    /// How the GPUs of all workers are.
    Gpus,
    /// The secrets that everybody's jobs can use.
    Secrets,
    /// The listener's own password, tokens, sessions and secrets.
    Account,
    /// The audit trail, and so whatever somebody may have changed: people, secrets, settings.
    Trail,
    /// A person's access: password, tokens, sessions, role and secrets. That person hears of it as [`Topic::Account`].
    Access(UserId),
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Workers => f.write_str("workers"),
            Self::Worker(id) => write!(f, "worker:{id}"),
            Self::Jobs => f.write_str("jobs"),
            Self::Job(id) => write!(f, "job:{id}"),
            Self::Log(id) => write!(f, "log:{id}"),
            Self::Configs => f.write_str("configs"),
            Self::Gpus => f.write_str("gpus"),
            Self::Secrets => f.write_str("secrets"),
            Self::Account => f.write_str("account"),
            Self::Trail => f.write_str("trail"),
            Self::Access(id) => write!(f, "access:{id}"),
        }
    }
}

impl Topic {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            None => match text {
                "workers" => Some(Self::Workers),
                "jobs" => Some(Self::Jobs),
                "configs" => Some(Self::Configs),
                "gpus" => Some(Self::Gpus),
                "secrets" => Some(Self::Secrets),
                "account" => Some(Self::Account),
                "trail" => Some(Self::Trail),
                _ => None,
            },
            Some(("worker", id)) => WorkerId::parse(id).ok().map(Self::Worker),
            Some(("job", id)) => JobId::parse(id).ok().map(Self::Job),
            Some(("log", id)) => JobId::parse(id).ok().map(Self::Log),
            Some(("access", id)) => UserId::parse(id).ok().map(Self::Access),
            Some(_) => None,
        }
    }
}

/// The `data:` of one message on `GET /api/events`: these topics changed, the newest at this version.
///
/// `resync` asks the listener to take everything as changed: it missed more than the server remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopicsChanged {
    /// The version to resume after, with the server's epoch: `<epoch>-<n>`.
    pub version: String,
    /// The topics, as text.
    pub topics: Vec<String>,
    /// Whether everything is to be fetched anew.
    #[serde(default)]
    pub resync: bool,
}
