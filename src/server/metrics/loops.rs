//! What the reconcilers did.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app::domain::time::Timestamp;

/// See the module.
#[derive(Debug, Default)]
pub struct Loops(Mutex<BTreeMap<&'static str, Arc<Passes>>>);

/// The passes of one.
#[derive(Debug, Default)]
pub struct Passes {
    /// How many there were.
    pub number: AtomicU64,
    /// How many of them failed.
    pub failed: AtomicU64,
    /// When the last one ended, in milliseconds since 1970.
    pub last_at: AtomicI64,
    /// How long it took, in microseconds.
    pub last_took: AtomicU64,
}

impl Loops {
    /// The one of this name.
    pub fn of(&self, name: &'static str) -> Arc<Passes> {
        Arc::clone(self.0.lock().expect("no panic while it is held").entry(name).or_default())
    }

    /// All of them.
    pub fn all(&self) -> Vec<(&'static str, Arc<Passes>)> {
        let loops = self.0.lock().expect("no panic while it is held");
        loops.iter().map(|(name, passes)| (*name, Arc::clone(passes))).collect()
    }
}

impl Passes {
    /// A pass ended.
    pub fn ended(&self, now: Timestamp, took: Duration, well: bool) {
        self.number.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(!well), Ordering::Relaxed);
        self.last_at.store(now.0, Ordering::Relaxed);
        self.last_took.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
