//! Until when the orchestrator considers this host alive: the heartbeat timeout after its last contact, counted from
//! when a request was sent, not from its response.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::worker::files::{LeaseRecord, VERSION};

/// Tracks the lease.
#[derive(Debug)]
pub struct LeaseTimer {
    /// From the registration, in ms; 0 before it.
    timeout_ms: AtomicU64,
    lease: watch::Sender<Option<LeaseRecord>>,
}

impl Default for LeaseTimer {
    fn default() -> Self {
        Self { timeout_ms: AtomicU64::new(0), lease: watch::Sender::new(None) }
    }
}

impl LeaseTimer {
    /// Sets the time after which the orchestrator considers a silent worker offline.
    pub fn set_timeout(&self, timeout_seconds: u64) {
        self.timeout_ms.store(timeout_seconds.saturating_mul(1_000), Ordering::Relaxed);
    }

    /// Renews the lease after the response to a request that was sent at this time. A response that arrives after that
    /// of a later request changes nothing.
    pub fn renew(&self, sent_boot_ms: u64) {
        let timeout_ms = self.timeout_ms.load(Ordering::Relaxed);
        if timeout_ms == 0 {
            return;
        }
        let lease = LeaseRecord { version: VERSION, end_boot_ms: sent_boot_ms.saturating_add(timeout_ms), timeout_ms };
        self.lease.send_if_modified(|current| {
            let is_later = current
                .is_none_or(|current| current.timeout_ms != timeout_ms || current.end_boot_ms < lease.end_boot_ms);
            if is_later {
                *current = Some(lease);
            }
            is_later
        });
    }

    /// The current lease, and its changes.
    pub fn subscribe(&self) -> watch::Receiver<Option<LeaseRecord>> {
        self.lease.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_counts_from_the_request() {
        let timer = LeaseTimer::default();
        let end = |timer: &LeaseTimer| timer.subscribe().borrow().map(|lease| lease.end_boot_ms);
        timer.renew(1_000);
        assert_eq!(end(&timer), None, "the length of the lease is unknown");
        timer.set_timeout(4);
        for (sent, expected) in [(1_000, 5_000), (3_000, 7_000), (2_000, 7_000)] {
            timer.renew(sent);
            assert_eq!(end(&timer), Some(expected), "sent at {sent}");
        }
        // A shorter timeout takes effect immediately.
        timer.set_timeout(1);
        timer.renew(3_500);
        assert_eq!(end(&timer), Some(4_500));
    }
}
