//! Reasons to stop. Stop requests are in `stop.json`, announced by a signal, and polled every second in case the signal
//! was lost; the lease of an exclusive job is the other source.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::disk_usage::DiskUsageMonitor;
use super::lease::{self, LeaseStatus, LeaseWatcher};
use super::lease_enforcer::LeaseEnforcer;
use crate::worker::files::{AttemptDir, AttemptSpec, StopCause, StopOrder};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A request that the trainer must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopRequest {
    pub cause: StopCause,
    /// Time to stop, counted from the first request.
    pub grace: Duration,
}

impl From<StopOrder> for StopRequest {
    fn from(order: StopOrder) -> Self {
        // Larger values exceed the clock, and mean forever.
        let grace_seconds = order.grace_seconds.min(crate::worker::args::MAX_STOP_GRACE_SECONDS);
        Self { cause: order.cause, grace: Duration::from_secs(grace_seconds) }
    }
}

pub struct StopRequests {
    dir: AttemptDir,
    order_signal: Signal,
    sigterm: Signal,
    lease: Option<LeaseWatcher>,
    usage: Option<DiskUsageMonitor>,
    /// If another process than the agent stops the supervisor.
    grace: Duration,
    last_order: Option<StopOrder>,
    last_request: Option<StopRequest>,
}

impl StopRequests {
    pub fn new(dir: &AttemptDir, spec: &AttemptSpec) -> io::Result<Self> {
        Ok(Self {
            dir: dir.clone(),
            order_signal: signal(SignalKind::user_defined1())?,
            sigterm: signal(SignalKind::terminate())?,
            lease: LeaseWatcher::start(dir, spec)?,
            usage: spec.disk.as_ref().map(|disk| DiskUsageMonitor::start(dir, disk)).transpose()?,
            grace: Duration::from_secs(spec.limits.stop_grace_seconds),
            last_order: None,
            last_request: None,
        })
    }

    /// Why the trainer may not even start.
    pub fn start_forbidden_by(&self) -> Option<StopCause> {
        if let Some(order) = self.read_order() {
            return Some(order.cause);
        }
        let is_active = self.lease_status().is_none_or(|status| matches!(status, LeaseStatus::Active { .. }));
        (!is_active).then_some(StopCause::Lease)
    }

    /// The thread that kills the trainer when its lease expires, even if the rest of this process hangs.
    pub fn lease_enforcer(&self) -> io::Result<LeaseEnforcer> {
        self.lease.as_ref().map_or(Ok(LeaseEnforcer::disabled()), |watcher| LeaseEnforcer::start(watcher.cached()))
    }

    fn lease_status(&self) -> Option<LeaseStatus> {
        self.lease.as_ref().map(|watcher| watcher.cached().status())
    }

    fn read_order(&self) -> Option<StopOrder> {
        self.dir.read_json("stop.json").ok().flatten()
    }

    /// The grace period of remaining processes, at most `max_grace`.
    pub fn limit_grace(&self, max_grace: Duration) -> Duration {
        match self.lease_status() {
            None => max_grace,
            Some(LeaseStatus::Active { left_ms: remaining_ms } | LeaseStatus::Expiring { grace_ms: remaining_ms }) => {
                max_grace.min(Duration::from_millis(remaining_ms))
            }
            Some(LeaseStatus::Expired) => Duration::ZERO,
        }
    }

    /// The next one that changes anything.
    pub async fn next(&mut self) -> StopRequest {
        loop {
            let new_order = self
                .read_order()
                .filter(|order| self.last_order.replace(*order) != Some(*order))
                .map(StopRequest::from);
            if let Some(request) = new_order.or_else(|| self.lease_request()).or_else(|| self.disk_request()) {
                self.last_request = Some(request);
                return request;
            }
            let poll_interval = if self.lease.is_some() { lease::POLL_INTERVAL } else { POLL_INTERVAL };
            tokio::select! {
                _ = self.order_signal.recv() => {}
                _ = self.sigterm.recv() => if self.last_request.is_none() {
                    // Most likely the host is shutting down, which is not the job's fault.
                    let request = StopRequest { cause: StopCause::Requeue, grace: self.grace };
                    self.last_request = Some(request);
                    return request;
                },
                () = tokio::time::sleep(poll_interval) => {}
            }
        }
    }

    /// The reason, if it was stopped for its disk usage.
    pub fn disk_limit_exceeded(&self) -> Option<String> {
        self.usage.as_ref()?.exceeded_reason()
    }

    fn disk_request(&self) -> Option<StopRequest> {
        let is_first = self.last_request.is_none() && self.disk_limit_exceeded().is_some();
        is_first.then_some(StopRequest { cause: StopCause::Disk, grace: self.grace })
    }

    fn lease_request(&self) -> Option<StopRequest> {
        merge_lease_request(self.lease_status()?, self.last_request)
    }
}

/// Merges the lease's requirement with the current stop request. It ends the grace period, but does not change an
/// earlier cause.
fn merge_lease_request(status: LeaseStatus, current: Option<StopRequest>) -> Option<StopRequest> {
    let cause = current.map_or(StopCause::Lease, |request| request.cause);
    let request = match status {
        LeaseStatus::Active { .. } => return None,
        LeaseStatus::Expiring { .. } if current.is_some() => return None,
        LeaseStatus::Expiring { grace_ms } => StopRequest { cause, grace: Duration::from_millis(grace_ms) },
        LeaseStatus::Expired => StopRequest { cause, grace: Duration::ZERO },
    };
    (current != Some(request)).then_some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_is_merged_into_stop_requests() {
        let seconds = Duration::from_secs;
        let request = |cause, grace| Some(StopRequest { cause, grace });
        let (cancelled, lease) = (StopCause::Cancelled, StopCause::Lease);
        let (active, expiring) = (LeaseStatus::Active { left_ms: 9_000 }, LeaseStatus::Expiring { grace_ms: 5_000 });
        for (status, current, expected) in [
            (active, None, None),
            (active, request(cancelled, seconds(30)), None),
            (expiring, None, request(lease, seconds(5))),
            (expiring, request(cancelled, seconds(30)), None),
            (expiring, request(lease, seconds(6)), None),
            (LeaseStatus::Expired, None, request(lease, Duration::ZERO)),
            (LeaseStatus::Expired, request(lease, seconds(5)), request(lease, Duration::ZERO)),
            (LeaseStatus::Expired, request(cancelled, seconds(30)), request(cancelled, Duration::ZERO)),
            (LeaseStatus::Expired, request(lease, Duration::ZERO), None),
        ] {
            assert_eq!(merge_lease_request(status, current), expected, "{status:?} after {current:?}");
        }
    }
}
