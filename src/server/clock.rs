//! The one place where the wall clock is read.

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};

/// Tells the time; tests move one by hand.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// How long to wait for what ends in so long: a moment longer, since it has ended only after it.
pub fn past(left: Millis) -> Duration {
    Duration::from_millis(left.0.max(0).unsigned_abs() + 1)
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved.
#[cfg(test)]
#[derive(Debug)]
pub struct ManualClock(std::sync::atomic::AtomicI64);

#[cfg(test)]
impl ManualClock {
    /// Starts at a moment in 2024.
    pub fn new() -> Self {
        Self(std::sync::atomic::AtomicI64::new(1_705_314_600_000))
    }

    /// Moves on.
    pub fn advance(&self, span: app::domain::time::Millis) {
        self.0.fetch_add(span.0, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }
}
