//! The only place where the wall clock is read.

mod clock_offset;
mod slewed;

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};

pub use clock_offset::estimate_offset;
#[cfg(feature = "simulation")]
pub use slewed::ClockReadings;
pub use slewed::{MAX_SLEW, SlewedClock};

/// A source of time; tests control theirs.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Since when the clock has run without interruption: no requests were served while the machine slept, and nothing
    /// is known of the time before a clock was set.
    fn continuous_since(&self) -> Timestamp {
        Timestamp(0)
    }

    /// Follows another clock, which is ahead by this much, instead of the machine's. Returns whether it jumped
    /// immediately.
    fn follow(&self, _ahead: Millis) -> bool {
        false
    }
}

/// The CPU time of this thread. A limit on it means the same on a busy machine.
pub fn thread_cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    // Linux has had this clock since 2.6.12.
    time.map(Duration::from).unwrap_or_default()
}

/// Waits slightly longer than `remaining`, because something expires only after its time.
pub fn slightly_after(remaining: Millis) -> Duration {
    Duration::from_millis(remaining.0.max(0).unsigned_abs() + 1)
}

/// The machine's clock as it is; a server uses [`SlewedClock`].
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that only tests move.
#[cfg(test)]
#[derive(Debug)]
pub struct ManualClock {
    now: std::sync::atomic::AtomicI64,
    continuous_since: std::sync::atomic::AtomicI64,
    followed_offsets: std::sync::Mutex<Vec<Millis>>,
}

#[cfg(test)]
impl ManualClock {
    /// Starts at a time in 2024.
    pub fn new() -> Self {
        Self {
            now: std::sync::atomic::AtomicI64::new(1_705_314_600_000),
            continuous_since: 0.into(),
            followed_offsets: Vec::new().into(),
        }
    }

    /// Advances the clock.
    pub fn advance(&self, span: app::domain::time::Millis) {
        self.now.fetch_add(span.0, std::sync::atomic::Ordering::SeqCst);
    }

    /// The offsets of the followed clock, in order.
    pub fn followed_offsets(&self) -> Vec<Millis> {
        self.followed_offsets.lock().expect("no panic while it is held").clone()
    }

    /// Simulates a sleep of the machine.
    pub fn sleep(&self, span: app::domain::time::Millis) {
        self.advance(span);
        self.continuous_since.store(self.now().0, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn continuous_since(&self) -> Timestamp {
        Timestamp(self.continuous_since.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn follow(&self, ahead: Millis) -> bool {
        self.followed_offsets.lock().expect("no panic while it is held").push(ahead);
        false
    }
}
