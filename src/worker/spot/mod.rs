//! Spot (preemptible) hosts: the termination notice, and its consequences.
//!
//! The agent then does what `--on-stop requeue` does, within the remaining time, and exits with 0.

mod metadata;
mod notices;

use std::time::Duration;

use tokio::time::Instant;

pub use metadata::find_service;

/// Part of the remaining time that is reserved for reports.
const REPORT_RESERVE: Duration = Duration::from_secs(10);
/// Minimum grace period of a trainer.
const MIN_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminationNotice {
    /// How long the host still runs, if the notice says so.
    pub time_left: Option<Duration>,
}

/// The termination of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTermination {
    /// For reports.
    pub sentence: String,
    /// When, if the notice says so.
    pub at: Option<Instant>,
}

impl HostTermination {
    /// The grace period of a trainer.
    pub fn stop_grace(&self, default_grace: Duration, now: Instant) -> Duration {
        let Some(at) = self.at else { return default_grace };
        let remaining = at.saturating_duration_since(now).saturating_sub(REPORT_RESERVE).max(MIN_GRACE);
        default_grace.min(remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_period_ends_before_the_host() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let grace = |time_left: Option<u64>| {
            HostTermination { sentence: String::new(), at: time_left.map(|time_left| now + seconds(time_left)) }
                .stop_grace(seconds(30), now)
        };
        let cases = [(None, 30), (Some(120), 30), (Some(30), 20), (Some(11), 1), (Some(3), 1), (Some(0), 1)];
        for (time_left, expected) in cases {
            assert_eq!(grace(time_left), seconds(expected), "{time_left:?}");
        }
    }
}
