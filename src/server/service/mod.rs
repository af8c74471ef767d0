//! Use cases. Each loads what it needs inside a transaction, asks the domain, writes what it decided guarded by what
//! it saw, appends the audit entry, and rings the doorbell after the commit (see [`unit`]). Nothing else writes state.

pub mod access;
pub mod agents;
pub mod artifacts;
mod astray;
pub mod audit;
pub mod bounds;
pub mod bulk;
pub mod checkpoints;
pub mod configs;
pub mod contention;
pub mod desired;
pub mod dispatch;
mod exclusive;
pub mod file_bytes;
mod fitness;
pub mod gpu_history;
pub mod gpus;
pub mod health;
pub mod jobs;
pub mod keys;
pub mod leader;
pub mod local;
mod log_lines;
pub mod log_pattern;
pub mod log_searches;
pub mod logs;
pub mod measure;
pub mod overrides;
pub mod presence;
pub mod rates;
pub mod readiness;
pub mod refusal;
pub mod registration;
pub mod reports;
pub mod retention;
mod retries;
mod revisions;
pub mod search;
pub mod secrets;
pub mod shares;
pub mod space;
pub mod storing;
mod superseded;
pub mod system;
mod timekeeping;
pub mod unit;
pub mod uploads;
pub mod usage;
pub mod views;
pub mod workers;

use std::sync::{Arc, Mutex, PoisonError};

use app::domain::ids::{Entropy, JobId, following};
use app::domain::plan::{Fleet, Limits};
use app::domain::time::{Millis, Timestamp};

use self::access::{AccountPolicy, Doors};
use crate::clock::Clock;
use crate::files::artifacts::Artifacts;
use crate::files::logs::Logs;
use crate::files::uploads::Uploads;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::store::known::Known;
use crate::store::{Store, Tx};
use crate::vault::Vault;

use self::audit::checkpoint::Signer;
use self::audit::refused::Floods;
use self::bounds::Bounds;
use self::contention::Contention;
use self::file_bytes::FileBytes;
use self::gpu_history::Histories;
use self::gpus::Readings;
use self::leader::Leadership;
use self::log_searches::LogSearches;
use self::presence::Presence;
use self::rates::Quotas;
use self::refusal::Refusal;
use self::retention::Kept;
use self::shares::Shares;
use self::space::Room;
use self::storing::Storing;

/// Numbers that rule the fleet.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Without a word for so long, a worker counts as offline (`SIMPLETUNER_HEARTBEAT_TIMEOUT`).
    pub heartbeat_timeout: Millis,
    /// How long a worker may take to answer an offer.
    pub offer_timeout: Millis,
    /// How many jobs may run at once.
    pub limits: Limits,
    /// Whether no label counts that an agent reports.
    pub ignore_reported_labels: bool,
    /// Whether configurations may bring code.
    pub allow_code: bool,
    /// How many workers may listen to this server at once.
    pub max_streams: usize,
    /// A leader among several servers that does not renew for so long leads no more.
    pub leader_term: Millis,
    /// A server that has not said for so long that it lives is gone, and so are the streams that it held.
    pub server_life: Millis,
    /// How long entries of the audit trail are kept; without a number, for ever.
    pub audit_retention: Option<Millis>,
    /// How often somebody may ask.
    pub quotas: Quotas,
    /// How long jobs and their files are kept.
    pub kept: Kept,
    /// The largest artifact, in bytes.
    pub artifact_limit: u64,
    /// The longest log of an attempt, in bytes, with what its worker had to drop.
    pub log_limit: u64,
    /// The most files that are kept of a job.
    pub most_artifacts: u64,
    /// What people, jobs and workers may use up.
    pub bounds: Bounds,
    /// How long sessions and tokens last.
    pub accounts: AccountPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            heartbeat_timeout: Millis::seconds(120),
            offer_timeout: Millis::seconds(30),
            limits: Limits::default(),
            ignore_reported_labels: false,
            allow_code: false,
            max_streams: 20_000,
            leader_term: Millis::seconds(6),
            server_life: Millis::seconds(8),
            audit_retention: None,
            quotas: Quotas::default(),
            kept: Kept::default(),
            artifact_limit: 64 << 30,
            log_limit: 64 << 30,
            most_artifacts: 100_000,
            bounds: Bounds::default(),
            accounts: AccountPolicy::default(),
        }
    }
}

impl Policy {
    /// The fleet as planning and explanations take it.
    pub fn fleet<'k>(&self, known: &'k Known) -> Fleet<'k> {
        let fleet = known.fleet(self.limits);
        if self.ignore_reported_labels { fleet.ignoring_reported_labels() } else { fleet }
    }

    /// How often workers are to send heartbeats: the smaller of 30 s and a quarter of the timeout.
    pub fn heartbeat_interval_seconds(&self) -> u64 {
        (self.heartbeat_timeout.0 / 4_000).clamp(1, 30).unsigned_abs()
    }
}

/// Everything that a use case needs.
pub struct Core {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The doorbell.
    pub hub: Hub,
    /// When workers were last heard of.
    pub presence: Presence,
    /// How workers' GPUs are.
    pub readings: Readings,
    /// How they were.
    pub histories: Histories,
    /// What is in memory about those who come in.
    pub doors: Doors,
    /// Which streams went from host to host.
    pub contention: Contention,
    /// What strangers were refused lately.
    pub floods: Floods,
    /// Signs the audit trail.
    pub signer: Signer,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Log files.
    pub logs: Logs,
    /// Who searches in them.
    pub searches: LogSearches,
    /// Who listens to events.
    pub event_streams: Shares,
    /// Artifact files.
    pub artifacts: Artifacts,
    /// Artifact files that are not whole yet.
    pub uploads: Uploads,
    /// Those of them that are whole, and not stored yet.
    pub storing: Storing,
    /// The numbers.
    pub policy: Policy,
    /// Names this process among the servers that share the database: its audit chain.
    pub server: String,
    /// Whether it leads them.
    pub leadership: Leadership,
    /// Keeps secrets for jobs.
    pub vault: Vault,
    /// How many bytes the files of people's jobs have.
    pub file_bytes: FileBytes,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether there is room on the disk.
    pub room: Room,
    /// The key that job tokens are derived from.
    pub job_token_key: Vec<u8>,
    /// Of what the last job's id was made.
    pub last_job_id: Mutex<(Timestamp, Entropy)>,
}

impl Core {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Randomness for an id.
    pub fn entropy(&self) -> Entropy {
        self.random.bytes()
    }

    /// An id for a new job. Those of this server sort in the order in which they are made, which is that of their turns.
    pub fn next_job_id(&self) -> JobId {
        let mut last = self.last_job_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last = following(*last, self.now(), self.entropy());
        JobId::new(last.0, last.1)
    }

    /// A view for reading.
    pub async fn read(&self) -> Result<Box<dyn Tx>, Refusal> {
        Ok(self.store.read().await?)
    }

    /// A view for what is asked all the time, or again when the bell rings: it may come from memory.
    pub async fn recent(&self) -> Result<Box<dyn Tx>, Refusal> {
        Ok(self.store.recent().await?)
    }
}
