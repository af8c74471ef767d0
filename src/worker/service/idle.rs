//! A host without work costs: after so long without a job its agent ends.

use std::time::Duration;

use tokio::time::Instant;

/// Since when there is no job.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    limit: Duration,
    since: Instant,
}

impl Idle {
    /// From the start of the agent.
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, since: now }
    }

    /// Takes note of how it stands: a job is `busy` until its end is delivered. Whether it was idle for too long.
    pub fn look(&mut self, busy: bool, now: Instant) -> bool {
        let over = !busy && now >= self.end();
        // Said once, or whoever does not act on it would be told without end.
        if busy || over {
            self.since = now;
        }
        over
    }

    /// When it will have been.
    pub fn end(&self) -> Instant {
        self.since + self.limit
    }

    /// See [`Self::new`].
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_from_the_start_or_the_last_jobs_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut idle = Idle::new(Duration::from_secs(10), start);
        let looks = [
            (9, false, false),
            (9, true, false),
            // Never while one runs, however long.
            (500, true, false),
            (509, false, false),
            (510, false, true),
            (511, false, false),
            (520, false, true),
        ];
        for (seconds, busy, over) in looks {
            assert_eq!(idle.look(busy, at(seconds)), over, "{seconds} s, {busy}");
        }
    }
}
