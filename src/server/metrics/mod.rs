//! Counters of the server. Counting is adding to atomics; what can be computed from memory on request, such as the
//! number of workers, is not counted here.

pub mod dispatch;
pub mod histogram;
pub mod http;
pub mod loops;
pub mod page;
pub mod shipping;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use app::domain::audit::rate_limit::RejectionKind;
use app::domain::time::Timestamp;

use self::dispatch::DispatchMetrics;
use self::histogram::{Histogram, LATENCY_BOUNDS, SIZE_BOUNDS, WAIT_BOUNDS};
use self::http::HttpMetrics;
use self::loops::LoopMetrics;
use self::shipping::ShippingMetrics;

#[derive(Debug)]
pub struct Metrics {
    /// When this server started.
    pub started_at: Timestamp,
    /// The database's writer.
    pub commits: CommitMetrics,
    /// Dispatch latency.
    pub dispatch: DispatchMetrics,
    /// HTTP requests.
    pub http: HttpMetrics,
    /// The time between two contacts of a worker.
    pub heartbeat_interval: Histogram,
    /// Rejected requests.
    pub rejections: RejectionMetrics,
    /// Background loops.
    pub loops: LoopMetrics,
    /// Shipping of audit checkpoints.
    pub shipping: ShippingMetrics,
}

impl Metrics {
    pub fn new(started_at: Timestamp) -> Self {
        Self {
            started_at,
            commits: CommitMetrics::default(),
            dispatch: DispatchMetrics::default(),
            http: HttpMetrics::default(),
            heartbeat_interval: Histogram::of_seconds(WAIT_BOUNDS),
            rejections: RejectionMetrics::default(),
            loops: LoopMetrics::default(),
            shipping: ShippingMetrics::default(),
        }
    }
}

#[derive(Debug)]
pub struct CommitMetrics {
    /// The duration of a group, from its first statement until it was durable.
    pub latency: Histogram,
    /// The number of use cases per group.
    pub sizes: Histogram,
    /// The number of groups that were rolled back.
    pub rolled_back: AtomicU64,
    /// The last write, in milliseconds since 1970; 0: never.
    written_at: AtomicI64,
}

impl Default for CommitMetrics {
    fn default() -> Self {
        let (times, sizes) = (Histogram::of_seconds(LATENCY_BOUNDS), Histogram::of_numbers(SIZE_BOUNDS));
        Self { latency: times, sizes, rolled_back: AtomicU64::default(), written_at: AtomicI64::default() }
    }
}

impl CommitMetrics {
    /// Records a committed group.
    pub fn record(&self, elapsed: Duration, members: usize, has_writes: bool, now: Timestamp) {
        self.latency.observe_duration(elapsed);
        self.sizes.observe(members as u64);
        if has_writes {
            self.written_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// When the database was last written to.
    pub fn written_at(&self) -> Timestamp {
        Timestamp(self.written_at.load(Ordering::Relaxed))
    }
}

/// Rejected requests.
#[derive(Debug, Default)]
pub struct RejectionMetrics {
    recorded: [AtomicU64; RejectionKind::ALL.len()],
    /// Unauthenticated requests that claim to be a worker's.
    pub unknown_workers: AtomicU64,
    /// Other unauthenticated requests.
    pub unknown_users: AtomicU64,
}

impl RejectionMetrics {
    /// Counts a rejection.
    pub fn record(&self, kind: RejectionKind) {
        self.recorded[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of rejections by kind.
    pub fn recorded(&self) -> impl Iterator<Item = (RejectionKind, u64)> {
        RejectionKind::ALL.iter().map(|kind| (*kind, self.recorded[*kind as usize].load(Ordering::Relaxed)))
    }
}
