//! Use cases. Each loads what it needs inside a transaction, lets the domain decide, writes the decision guarded by the state
//! it was based on, appends the audit entry, and sends change notifications after the commit (see [`unit_of_work`]). Nothing
//! else writes state.

pub mod access;
pub mod agents;
pub mod artifacts;
pub mod audit;
pub mod bulk;
pub mod configs;
pub mod error;
pub mod gpus;
pub mod jobs;
pub mod logs;
pub mod search;
pub mod secrets;
pub mod system;
pub mod unit_of_work;
pub mod usage;
pub mod views;
pub mod workers;

use std::sync::{Arc, Mutex, PoisonError};

use app::domain::ids::{Entropy, JobId, next_unique};
use app::domain::plan::{ConcurrencyLimits, PlannerFleet};
use app::domain::time::{Millis, Timestamp};

use self::access::{AccountPolicy, Authenticator};
use crate::change_notifier::ChangeNotifier;
use crate::clock::Clock;
use crate::files::artifacts::ArtifactStore;
use crate::files::logs::LogStore;
use crate::files::uploads::UploadStore;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::store::cache::state::FleetState;
use crate::store::{Store, Tx};
use crate::vault::Vault;

use self::access::per_user_limit::PerPersonLimiter;
use self::access::rate_limits::RateQuotas;
use self::agents::presence::Presence;
use self::agents::token_conflict::TakeoverTracker;
use self::artifacts::file_usage::FileUsageCache;
use self::artifacts::upload_finalizer::UploadFinalizer;
use self::audit::checkpoint::AuditSigner;
use self::audit::refusals::AuditRateLimiter;
use self::error::ServiceError;
use self::gpus::GpuReadings;
use self::gpus::history::GpuHistoryStore;
use self::jobs::retention::JobRetention;
use self::logs::searches::LogSearchLimiter;
use self::system::disk_space::DiskSpaceGuard;
use self::system::leadership::Leadership;
use self::usage::limits::UsageLimits;

#[derive(Debug, Clone, Copy)]
pub struct ServerPolicy {
    /// A worker that was silent for this time counts as offline (`SIMPLETUNER_HEARTBEAT_TIMEOUT`).
    pub heartbeat_timeout: Millis,
    /// How long a worker may take to answer an offer.
    pub offer_timeout: Millis,
    /// Limits of concurrent jobs.
    pub limits: ConcurrencyLimits,
    /// Whether labels that agents report are ignored.
    pub ignore_reported_labels: bool,
    /// Whether configurations may contain code.
    pub allow_code: bool,
    /// The maximum number of open worker streams on this server.
    pub max_streams: usize,
    /// A leader that does not renew within this time loses the leadership.
    pub leader_term: Millis,
    /// A server without a sign of life for this time is gone, and so are its streams.
    pub server_life: Millis,
    /// How long audit entries are kept; `None`: for ever.
    pub audit_retention: Option<Millis>,
    /// Rate limits.
    pub quotas: RateQuotas,
    /// How long jobs and their files are kept.
    pub retention: JobRetention,
    /// The maximum size of an artifact, in bytes.
    pub artifact_limit: u64,
    /// The maximum length of an attempt's log, in bytes, including what its worker had to drop.
    pub log_limit: u64,
    /// The maximum number of files per job.
    pub max_artifacts: u64,
    /// Usage limits of users, jobs and workers.
    pub usage_limits: UsageLimits,
    /// Lifetimes of sessions and tokens.
    pub accounts: AccountPolicy,
}

impl Default for ServerPolicy {
    fn default() -> Self {
        Self {
            heartbeat_timeout: Millis::from_secs(120),
            offer_timeout: Millis::from_secs(30),
            limits: ConcurrencyLimits::default(),
            ignore_reported_labels: false,
            allow_code: false,
            max_streams: 20_000,
            leader_term: Millis::from_secs(6),
            server_life: Millis::from_secs(8),
            audit_retention: None,
            quotas: RateQuotas::default(),
            retention: JobRetention::default(),
            artifact_limit: 64 << 30,
            log_limit: 64 << 30,
            max_artifacts: 100_000,
            usage_limits: UsageLimits::default(),
            accounts: AccountPolicy::default(),
        }
    }
}

impl ServerPolicy {
    /// Returns the fleet for planning and explanations.
    pub fn planner_fleet<'k>(&self, known: &'k FleetState) -> PlannerFleet<'k> {
        let fleet = known.planner_fleet(self.limits);
        if self.ignore_reported_labels { fleet.ignoring_reported_labels() } else { fleet }
    }

    /// The heartbeat interval that agents are told: the smaller of 30 s and a quarter of the timeout.
    pub fn heartbeat_interval_seconds(&self) -> u64 {
        (self.heartbeat_timeout.0 / 4_000).clamp(1, 30).unsigned_abs()
    }
}

pub struct Core {
    pub store: Arc<dyn Store>,
    /// Sends change notifications.
    pub notifier: ChangeNotifier,
    /// Last contacts of workers.
    pub presence: Presence,
    /// Newest readings of workers' GPUs.
    pub gpu_readings: GpuReadings,
    /// GPU history.
    pub gpu_history: GpuHistoryStore,
    /// The in-memory state of authentication.
    pub authenticator: Authenticator,
    /// Recent takeovers of streams by other hosts.
    pub takeovers: TakeoverTracker,
    /// Limits records of rejected requests.
    pub audit_limiter: AuditRateLimiter,
    pub audit_signer: AuditSigner,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub logs: LogStore,
    /// Limits concurrent log searches.
    pub log_searches: LogSearchLimiter,
    /// Limits concurrent event streams.
    pub event_streams: PerPersonLimiter,
    pub artifacts: ArtifactStore,
    /// Incomplete artifact files.
    pub uploads: UploadStore,
    /// Stores complete uploads.
    pub finalizer: UploadFinalizer,
    /// Settings.
    pub policy: ServerPolicy,
    /// Identifies this process among the servers of a database: its audit chain.
    pub server: String,
    /// Whether this server is the leader.
    pub leadership: Leadership,
    /// Encrypts secrets of jobs.
    pub vault: Vault,
    pub file_bytes: FileUsageCache,
    /// Counters.
    pub metrics: Metrics,
    /// Free disk space.
    pub disk_space: DiskSpaceGuard,
    /// The key from which job tokens are derived.
    pub token_signing_key: Vec<u8>,
    /// The source of the last job's id.
    pub last_job_id: Mutex<(Timestamp, Entropy)>,
}

impl Core {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Randomness for an id.
    pub fn entropy(&self) -> Entropy {
        self.random.bytes()
    }

    /// Creates a job id. Ids of this server sort in the order of their creation, which is that of the queue.
    pub fn next_job_id(&self) -> JobId {
        let mut last = self.last_job_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last = next_unique(*last, self.now(), self.entropy());
        JobId::new(last.0, last.1)
    }

    /// A snapshot for reading.
    pub async fn read(&self) -> Result<Box<dyn Tx>, ServiceError> {
        Ok(self.store.read().await?)
    }

    /// A snapshot for frequent requests, or after a change notification: it may come from memory.
    pub async fn read_recent(&self) -> Result<Box<dyn Tx>, ServiceError> {
        Ok(self.store.read_recent().await?)
    }
}
