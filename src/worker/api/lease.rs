//! Until when the orchestrator takes this host for alive: the heartbeat timeout after it was last heard of, counted from when
//! the agent asked and not from when it was answered.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::files::{Lease, VERSION};

/// See the module.
#[derive(Debug)]
pub struct LeaseTimer {
    /// What the registration said, in ms; 0 before.
    timeout_ms: AtomicU64,
    lease: watch::Sender<Option<Lease>>,
}

impl Default for LeaseTimer {
    fn default() -> Self {
        Self { timeout_ms: AtomicU64::new(0), lease: watch::Sender::new(None) }
    }
}

impl LeaseTimer {
    /// The orchestrator has said after how long it takes a silent worker for dead.
    pub fn told(&self, timeout_seconds: u64) {
        self.timeout_ms.store(timeout_seconds.saturating_mul(1_000), Ordering::Relaxed);
    }

    /// What was sent at this moment was answered. An answer that took longer than a later one changes nothing.
    pub fn renew(&self, sent_boot_ms: u64) {
        let timeout_ms = self.timeout_ms.load(Ordering::Relaxed);
        if timeout_ms == 0 {
            return;
        }
        let lease = Lease { version: VERSION, end_boot_ms: sent_boot_ms.saturating_add(timeout_ms), timeout_ms };
        self.lease.send_if_modified(|known| {
            let later =
                known.is_none_or(|known| known.timeout_ms != timeout_ms || known.end_boot_ms < lease.end_boot_ms);
            if later {
                *known = Some(lease);
            }
            later
        });
    }

    /// How it stands, and when it changes.
    pub fn subscribe(&self) -> watch::Receiver<Option<Lease>> {
        self.lease.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_counted_from_the_question() {
        let timer = LeaseTimer::default();
        let end = |timer: &LeaseTimer| timer.subscribe().borrow().map(|lease| lease.end_boot_ms);
        timer.renew(1_000);
        assert_eq!(end(&timer), None, "nobody has said how long it is");
        timer.told(4);
        for (sent, expected) in [(1_000, 5_000), (3_000, 7_000), (2_000, 7_000)] {
            timer.renew(sent);
            assert_eq!(end(&timer), Some(expected), "asked at {sent}");
        }
        // Somebody has set a shorter timeout: that holds from now on.
        timer.told(1);
        timer.renew(3_500);
        assert_eq!(end(&timer), Some(4_500));
    }
}
