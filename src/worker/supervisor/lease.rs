//! The lease of an exclusive job: no process of its trainer may be alive when it expires, whatever happened to the
//! agent.
//!
//! A separate thread reads it into memory: a hung disk only makes the copy older.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::worker::clock;
use crate::worker::files::{AttemptDir, AttemptSpec, LeaseRecord};

/// Everything is killed this long before the expiry, because processes need time to exit.
const MARGIN_MS: u64 = 2_000;
/// How often the clock is read. Not a timer, because it must notice that the host was suspended.
pub const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What a lease requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Nothing yet; this many ms are left until the kill.
    Active { left_ms: u64 },
    /// The trainer must be told to stop, and has this many ms.
    Expiring { grace_ms: u64 },
    /// The kill is due.
    Expired,
}

/// Evaluates a lease at a time of its clock, for a trainer with this grace period in ms. The grace period is at most
/// half of a new lease; otherwise one lost heartbeat would stop the trainer.
pub fn lease_status(now_ms: u64, lease: &LeaseRecord, grace_ms: u64) -> LeaseStatus {
    let margin = MARGIN_MS.min(lease.timeout_ms / 4);
    let kill = lease.end_boot_ms.saturating_sub(margin);
    let stop = lease.end_boot_ms.saturating_sub(grace_ms.min(lease.timeout_ms / 2).max(margin));
    if now_ms >= kill {
        LeaseStatus::Expired
    } else if now_ms >= stop {
        LeaseStatus::Expiring { grace_ms: kill - now_ms }
    } else {
        LeaseStatus::Active { left_ms: kill - now_ms }
    }
}

/// The lease as it was last read.
#[derive(Debug, Clone)]
pub struct CachedLease {
    grace_ms: u64,
    lease: Arc<Mutex<Option<LeaseRecord>>>,
}

impl CachedLease {
    /// The current status. Without a lease it is expired.
    pub fn status(&self) -> LeaseStatus {
        let lease = *self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.map_or(LeaseStatus::Expired, |lease| lease_status(clock::boot_ms(), &lease, self.grace_ms))
    }

    fn read(&self, dir: &AttemptDir) {
        // If it cannot be read while it is being written, the last value stays.
        if let Ok(Some(lease)) = dir.read_json("lease.json") {
            *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
        }
    }
}

/// Reads the lease of an attempt until it is dropped.
pub struct LeaseWatcher {
    cached: CachedLease,
    _stop_on_drop: Sender<()>,
}

impl LeaseWatcher {
    /// For an attempt; `None` if it is not exclusive. The lease was read once when this returns.
    pub fn start(dir: &AttemptDir, spec: &AttemptSpec) -> io::Result<Option<Self>> {
        if !spec.offer.exclusive {
            return Ok(None);
        }
        let grace_ms = spec.limits.stop_grace_seconds.saturating_mul(1_000);
        let cached = CachedLease { grace_ms, lease: Arc::default() };
        cached.read(dir);
        let (stop, stopped) = channel();
        let (dir, reader) = (dir.clone(), cached.clone());
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || poll_lease(&dir, &reader, &stopped))?;
        Ok(Some(Self { cached, _stop_on_drop: stop }))
    }

    pub fn cached(&self) -> &CachedLease {
        &self.cached
    }
}

fn poll_lease(dir: &AttemptDir, cached: &CachedLease, stopped: &Receiver<()>) {
    while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        cached.read(dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::files::VERSION;

    const fn active(left_ms: u64) -> LeaseStatus {
        LeaseStatus::Active { left_ms }
    }

    const fn expiring(grace_ms: u64) -> LeaseStatus {
        LeaseStatus::Expiring { grace_ms }
    }

    #[test]
    fn stop_request_precedes_kill_and_kill_precedes_expiry() {
        // Duration of the lease, its expiry, the requested grace period, the time.
        for (timeout_ms, end_boot_ms, grace_ms, now, expected) in [
            (120_000, 200_000, 30_000, 80_000, active(118_000)),
            (120_000, 200_000, 30_000, 169_999, active(28_001)),
            (120_000, 200_000, 30_000, 170_000, expiring(28_000)),
            (120_000, 200_000, 30_000, 197_999, expiring(1)),
            (120_000, 200_000, 30_000, 198_000, LeaseStatus::Expired),
            // A host that resumes long after.
            (120_000, 200_000, 30_000, 9_000_000, LeaseStatus::Expired),
            // The grace period is at most half of the lease.
            (120_000, 200_000, 600_000, 139_999, active(58_001)),
            (120_000, 200_000, 600_000, 140_000, expiring(58_000)),
            // No grace period: killed immediately.
            (120_000, 200_000, 0, 197_999, active(1)),
            (120_000, 200_000, 0, 198_000, LeaseStatus::Expired),
            // A short lease has a short margin.
            (4_000, 10_000, 30_000, 7_999, active(1_001)),
            (4_000, 10_000, 30_000, 8_000, expiring(1_000)),
            (4_000, 10_000, 30_000, 9_000, LeaseStatus::Expired),
            // From a broken file.
            (0, 0, 30_000, 0, LeaseStatus::Expired),
            (u64::MAX, 1_000, 30_000, 0, LeaseStatus::Expired),
        ] {
            let lease = LeaseRecord { version: VERSION, end_boot_ms, timeout_ms };
            assert_eq!(lease_status(now, &lease, grace_ms), expected, "{lease:?} grace {grace_ms} at {now}");
        }
    }
}
