pub(super) mod clock_sync;
mod external_changes;
pub mod fleet_metrics;
pub mod leadership;
pub(super) mod overview;
pub mod readiness;

use std::sync::Arc;

use app::protocol::system::{
    CheckView, DatabaseView, DiskView, EffectiveLimitsView, ServerView, StreamsView, SystemView,
};

use self::readiness::ReadinessResult;
use super::error::ServiceError;
use crate::clock::{Clock, SystemClock};
use crate::files::logs::LogStore;
use crate::service::ServiceContext;
use crate::service::access::AccessService;
use crate::service::agents::AgentService;
use crate::service::jobs::JobService;
use crate::service::workers::WorkerService;
use crate::service::workers::gpu_readings::GpuReadings;

/// The server itself: its state, its leadership, the overview.
pub struct SystemService {
    pub(super) logs: Arc<LogStore>,
    pub(super) readings: Arc<GpuReadings>,
    pub(super) access: Arc<AccessService>,
    pub(super) agents: Arc<AgentService>,
    pub(super) jobs: Arc<JobService>,
    pub(super) workers: Arc<WorkerService>,
    pub(super) context: Arc<ServiceContext>,
}

impl SystemService {
    /// Returns the use cases' part of the system view; the edge adds the settings, the certificate and the newest
    /// backup.
    pub async fn system_view(&self) -> Result<SystemView, ServiceError> {
        let checks = self.readiness().await;
        let log_bytes = self.logs.total_bytes().await?;
        let mut tx = self.context.read().await?;
        let (database, schema) = (tx.database_info().await?, tx.schema().await?.version);
        let (servers, artifact_bytes) =
            (tx.registered_servers(self.context.policy.server_life).await?, tx.artifact_bytes().await?);
        let heads = tx.audit_heads().await?;
        drop(tx);
        let streams = self.context.notifier.stream_counts();
        let server = |registered: crate::store::system::servers::RegisteredServer| ServerView {
            this: registered.id == self.context.server,
            id: registered.id,
            leads: registered.is_leader,
            seen_at: registered.seen_at,
            version: registered.version,
        };
        Ok(SystemView {
            server_time: self.context.now(),
            clock_ahead_ms: (self.context.now() - SystemClock.now()).0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.context.metrics.started_at,
            checks: checks.into_iter().map(check_view).collect(),
            database: DatabaseView {
                engine: database.engine.to_owned(),
                version: database.version,
                bytes: database.bytes,
                wal_bytes: database.wal_bytes,
                schema,
                known_schema: self.context.store.newest_schema(),
            },
            servers: servers.into_iter().map(server).collect(),
            streams: StreamsView {
                workers: streams.workers as u64,
                most_workers: self.context.policy.max_streams as u64,
                listeners: streams.listeners as u64,
            },
            disk: self.context.disk_space.space().map(|space| DiskView {
                total: space.total,
                free: space.free,
                floor: self.context.disk_space.floor_bytes(),
                full_since: self.context.disk_space.full_since(),
            }),
            log_bytes,
            artifact_bytes,
            audit_entries: heads.values().map(|head| (head.newest.seq - head.removed.seq).max(0).unsigned_abs()).sum(),
            backed_up_at: None,
            tls: None,
            in_force: self.effective_limits(),
            settings: Vec::new(),
        })
    }

    fn effective_limits(&self) -> EffectiveLimitsView {
        let policy = &self.context.policy;
        EffectiveLimitsView {
            heartbeat_interval: policy.heartbeat_interval_seconds(),
            heartbeat_timeout: (policy.heartbeat_timeout.0 / 1_000).unsigned_abs(),
            offer_timeout: (policy.offer_timeout.0 / 1_000).unsigned_abs(),
            artifact_limit: policy.artifact_limit,
            log_limit: policy.log_limit,
            most_artifacts: policy.max_artifacts,
        }
    }
}

fn check_view((name, result): (&'static str, ReadinessResult)) -> CheckView {
    let (status, detail) = match result {
        ReadinessResult::Pass => ("ok", None),
        ReadinessResult::Warning(reason) => ("warning", Some(reason)),
        ReadinessResult::Failure(reason) => ("failed", Some(reason)),
    };
    CheckView { name: name.to_owned(), status: status.to_owned(), detail: detail.map(str::to_owned) }
}
