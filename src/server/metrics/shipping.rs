//! Metrics of shipping the audit log's checkpoints.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use app::domain::time::Timestamp;

#[derive(Debug, Default)]
pub struct ShippingMetrics {
    /// The number of shipped lines.
    pub lines: AtomicU64,
    pub failures: AtomicU64,
    /// Since when it fails, in milliseconds since 1970; 0 if it does not.
    failing_since: AtomicI64,
}

impl ShippingMetrics {
    /// Counts shipped lines.
    pub fn record_sent(&self, lines: u64) {
        self.lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Records whether everything was shipped.
    pub fn record_try(&self, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.failing_since.store(0, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let _ = self.failing_since.compare_exchange(0, now.0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Since when it fails.
    pub fn failing_since(&self) -> Option<Timestamp> {
        let since = self.failing_since.load(Ordering::Relaxed);
        (since > 0).then_some(Timestamp(since))
    }
}
