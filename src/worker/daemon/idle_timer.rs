//! Exits the agent after a time without jobs, because idle hosts cost money.

use std::time::Duration;

use tokio::time::Instant;

/// Tracks since when there is no job.
#[derive(Debug, Clone, Copy)]
pub struct IdleTimer {
    limit: Duration,
    since: Instant,
}

impl IdleTimer {
    /// Starts with the agent.
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, since: now }
    }

    /// Records whether there is a job: one is `busy` until its end is delivered. Returns whether the agent was idle for
    /// too long.
    pub fn update(&mut self, busy: bool, now: Instant) -> bool {
        let is_expired = !busy && now >= self.expires_at();
        // Reported once; otherwise a caller that does not act on it would get it endlessly.
        if busy || is_expired {
            self.since = now;
        }
        is_expired
    }

    pub fn expires_at(&self) -> Instant {
        self.since + self.limit
    }

    pub fn limit(&self) -> Duration {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_from_the_start_or_the_last_job() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut idle = IdleTimer::new(Duration::from_secs(10), start);
        let checks = [
            (9, false, false),
            (9, true, false),
            // Never while a job runs, however long.
            (500, true, false),
            (509, false, false),
            (510, false, true),
            (511, false, false),
            (520, false, true),
        ];
        for (seconds, busy, expected) in checks {
            assert_eq!(idle.update(busy, at(seconds)), expected, "{seconds} s, {busy}");
        }
    }
}
