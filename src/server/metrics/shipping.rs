//! How sending the audit trail's checkpoints elsewhere goes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use app::domain::time::Timestamp;

/// See the module.
#[derive(Debug, Default)]
pub struct Shipping {
    /// Lines that were sent.
    pub lines: AtomicU64,
    /// Tries that failed.
    pub failures: AtomicU64,
    /// Since when it fails, in milliseconds since 1970; 0 if it does not.
    failing_since: AtomicI64,
}

impl Shipping {
    /// So many lines were sent.
    pub fn sent(&self, lines: u64) {
        self.lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// All was sent that there was, or not.
    pub fn tried(&self, went_well: bool, now: Timestamp) {
        if went_well {
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
