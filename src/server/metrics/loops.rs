//! Metrics of background loops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app::domain::time::Timestamp;

#[derive(Debug, Default)]
pub struct LoopMetrics(Mutex<BTreeMap<&'static str, Arc<LoopPasses>>>);

/// The passes of one loop.
#[derive(Debug, Default)]
pub struct LoopPasses {
    /// The number of passes.
    pub count: AtomicU64,
    /// The number of failed passes.
    pub failed: AtomicU64,
    /// When the last one ended, in milliseconds since 1970.
    pub last_at: AtomicI64,
    /// The duration of the last one, in microseconds.
    pub last_duration: AtomicU64,
}

impl LoopMetrics {
    /// The loop of this name.
    pub fn get(&self, name: &'static str) -> Arc<LoopPasses> {
        Arc::clone(self.0.lock().expect("no panic while it is held").entry(name).or_default())
    }

    pub fn all(&self) -> Vec<(&'static str, Arc<LoopPasses>)> {
        let loops = self.0.lock().expect("no panic while it is held");
        loops.iter().map(|(name, passes)| (*name, Arc::clone(passes))).collect()
    }
}

impl LoopPasses {
    /// Records a pass.
    pub fn record(&self, now: Timestamp, elapsed: Duration, succeeded: bool) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(!succeeded), Ordering::Relaxed);
        self.last_at.store(now.0, Ordering::Relaxed);
        self.last_duration.store(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
