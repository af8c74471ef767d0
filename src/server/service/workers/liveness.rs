//! Contacts of workers, and whether a worker counts as offline, by what this server knows.

use std::net::IpAddr;

use app::domain::ids::WorkerId;
use app::domain::liveness::{self, LivenessVerdict};
use app::domain::time::Timestamp;
use app::domain::worker::OfflineCause;

use crate::service::ServiceContext;
use crate::service::context::presence::{last_seen, written_contact};
use crate::service::workers::WorkerService;
use crate::store::workers::{LastContact, StoredWorker};

impl WorkerService {
    /// Records that an agent has sent a request, now and from this address.
    pub fn record_contact(&self, worker: &WorkerId, from: Option<IpAddr>) {
        let now = self.context.now();
        if let Some(before) = self.context.presence.record(worker, LastContact { at: now, from }) {
            self.context.metrics.heartbeat_interval.observe((now - before).0.max(0).unsigned_abs() * 1_000);
        }
    }
}

/// Logs that a worker went offline. Its operator knows of a disconnect and of a rotation.
pub fn log_offline(worker: &WorkerId, name: &str, cause: OfflineCause) {
    let cause_code = cause.as_str();
    match cause {
        OfflineCause::HeartbeatTimeout => tracing::warn!(%worker, name, cause = cause_code, "worker: went offline"),
        OfflineCause::Disconnected | OfflineCause::TokenRotated => {
            tracing::info!(%worker, name, cause = cause_code, "worker: went offline");
        }
    }
}

/// The leader's verdict on a worker; `None` if this server is not the leader.
pub fn liveness_verdict(context: &ServiceContext, stored: &StoredWorker, now: Timestamp) -> Option<LivenessVerdict> {
    context.leadership.held_since()?;
    let (serving_since, timeout) = (serving_since(context), context.policy.heartbeat_timeout);
    let judge = |seen_at| liveness::judge_liveness(&stored.worker, seen_at, serving_since, timeout, now);
    // A worker that was not silent when its contact was last written is not silent now.
    judge(written_contact(context, stored))?;
    judge(last_seen(context, stored))
}

/// When a silent worker counts as offline.
pub fn offline_at(context: &ServiceContext, stored: &StoredWorker) -> Timestamp {
    liveness::offline_at(
        &stored.worker,
        last_seen(context, stored),
        serving_since(context),
        context.policy.heartbeat_timeout,
    )
}

/// Since when agents could reach this server without interruption, and as its leader, if it is the leader.
fn serving_since(context: &ServiceContext) -> Timestamp {
    let continuous_since = context.clock.continuous_since();
    context.leadership.held_since().map_or(continuous_since, |leader_since| leader_since.max(continuous_since))
}
