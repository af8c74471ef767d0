//! The one place where the wall clock is read.

mod shared;
mod steady;

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};

pub use shared::ahead;
pub use steady::{NEVER_RIGHT, SteadyClock};

/// Tells the time; tests move one by hand.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Since when it has gone on without a break: nobody was listened to while the machine slept, and nothing can be
    /// said of the time before a clock was set.
    fn unbroken_since(&self) -> Timestamp {
        Timestamp(0)
    }

    /// Another clock, which is ahead by so much, is the one to follow from now on, and not the machine's. Whether it is
    /// followed at once.
    fn follow(&self, _ahead: Millis) -> bool {
        false
    }
}

/// The CPU time that this thread has used. What is bounded by it costs as much on a machine that is busy.
pub fn thread_time() -> Duration {
    let used = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    // Linux has had this clock since 2.6.12.
    used.map(Duration::from).unwrap_or_default()
}

/// How long to wait for what ends in so long: a moment longer, since it has ended only after it.
pub fn past(left: Millis) -> Duration {
    Duration::from_millis(left.0.max(0).unsigned_abs() + 1)
}

/// The machine's clock as it is; a server goes by [`SteadyClock`].
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
pub struct ManualClock {
    now: std::sync::atomic::AtomicI64,
    unbroken_since: std::sync::atomic::AtomicI64,
    shown: std::sync::Mutex<Vec<Millis>>,
}

#[cfg(test)]
impl ManualClock {
    /// Starts at a moment in 2024.
    pub fn new() -> Self {
        Self {
            now: std::sync::atomic::AtomicI64::new(1_705_314_600_000),
            unbroken_since: 0.into(),
            shown: Vec::new().into(),
        }
    }

    /// Moves on.
    pub fn advance(&self, span: app::domain::time::Millis) {
        self.now.fetch_add(span.0, std::sync::atomic::Ordering::SeqCst);
    }

    /// By how much the clock that it was to follow was ahead, each time.
    pub fn shown(&self) -> Vec<Millis> {
        self.shown.lock().expect("no panic while it is held").clone()
    }

    /// The machine sleeps.
    pub fn sleep(&self, span: app::domain::time::Millis) {
        self.advance(span);
        self.unbroken_since.store(self.now().0, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn unbroken_since(&self) -> Timestamp {
        Timestamp(self.unbroken_since.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn follow(&self, ahead: Millis) -> bool {
        self.shown.lock().expect("no panic while it is held").push(ahead);
        false
    }
}
