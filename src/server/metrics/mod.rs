//! What is counted while the server works. Counting is adding to atomics; what can be told from memory when it is asked
//! for, such as how many workers there are, is not counted here.

pub mod dispatch;
pub mod histogram;
pub mod http;
pub mod loops;
pub mod page;
pub mod shipping;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use app::domain::audit::flood::Refused;
use app::domain::time::Timestamp;

use self::dispatch::Dispatch;
use self::histogram::{Histogram, SIZES, TIMES, WAITS};
use self::http::Http;
use self::loops::Loops;
use self::shipping::Shipping;

/// See the module.
#[derive(Debug)]
pub struct Metrics {
    /// When this server started.
    pub started_at: Timestamp,
    /// What the database's writer does.
    pub commits: Commits,
    /// How long jobs take to get to a worker.
    pub dispatch: Dispatch,
    /// What was asked, and how it was answered.
    pub http: Http,
    /// How long workers are silent between two signs of life.
    pub silence: Histogram,
    /// What strangers were refused.
    pub refused: Refusals,
    /// The reconcilers.
    pub loops: Loops,
    /// Checkpoints of the audit trail that are sent elsewhere.
    pub shipping: Shipping,
}

impl Metrics {
    /// Nothing yet.
    pub fn new(started_at: Timestamp) -> Self {
        Self {
            started_at,
            commits: Commits::default(),
            dispatch: Dispatch::default(),
            http: Http::default(),
            silence: Histogram::of_seconds(WAITS),
            refused: Refusals::default(),
            loops: Loops::default(),
            shipping: Shipping::default(),
        }
    }
}

/// What the database's writer does.
#[derive(Debug)]
pub struct Commits {
    /// How long a group took, from its first statement until it was durable.
    pub times: Histogram,
    /// How many use cases were committed together.
    pub sizes: Histogram,
    /// Groups that were rolled back.
    pub undone: AtomicU64,
    /// When something was written last, in milliseconds since 1970; 0 for never.
    written_at: AtomicI64,
}

impl Default for Commits {
    fn default() -> Self {
        let (times, sizes) = (Histogram::of_seconds(TIMES), Histogram::of_numbers(SIZES));
        Self { times, sizes, undone: AtomicU64::default(), written_at: AtomicI64::default() }
    }
}

impl Commits {
    /// A group was committed.
    pub fn committed(&self, took: Duration, members: usize, wrote: bool, now: Timestamp) {
        self.times.took(took);
        self.sizes.observe(members as u64);
        if wrote {
            self.written_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// When something was written last.
    pub fn written_at(&self) -> Timestamp {
        Timestamp(self.written_at.load(Ordering::Relaxed))
    }
}

/// What strangers were refused.
#[derive(Debug, Default)]
pub struct Refusals {
    recorded: [AtomicU64; Refused::ALL.len()],
    /// Requests of workers, and of whoever claims to be one, that nobody is known to have sent.
    pub of_workers: AtomicU64,
    /// The same, of people and scripts.
    pub of_people: AtomicU64,
}

impl Refusals {
    /// Somebody was refused this.
    pub fn note(&self, kind: Refused) {
        self.recorded[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often what was refused.
    pub fn recorded(&self) -> impl Iterator<Item = (Refused, u64)> {
        Refused::ALL.iter().map(|kind| (*kind, self.recorded[*kind as usize].load(Ordering::Relaxed)))
    }
}
