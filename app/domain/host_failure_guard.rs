//! Stops a host from accepting jobs after several fast failures, so that a broken host does not fail one queued job after
//! another.
//!
//! A broken configuration fails fast on every host, so each configuration counts only once; failures of three different
//! configurations in a row are attributed to the host. After a cooldown the host is tried again (a half-open circuit
//! breaker), so that three configurations that are broken on purpose cannot block a host permanently.

use super::time::{Millis, Timestamp};

/// A failure within this time after the start of the trainer is a fast failure.
pub const FAST_FAILURE: Millis = Millis::from_secs(10);
/// Time for which a failing host accepts no jobs.
pub const COOLDOWN: Millis = Millis::from_secs(600);
/// Number of different configurations that must fail fast in a row.
const TRIP_AFTER: usize = 3;
/// Maximum length of a quoted error, in characters.
const MAX_ERROR_CHARS: usize = 100;

/// What the end of an attempt shows about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEvidence<'e> {
    /// The trainer failed within [`FAST_FAILURE`].
    FailedFast {
        /// The configuration's name.
        config: &'e str,
        /// The first line of the error.
        error: &'e str,
    },
    /// The trainer ran, whatever its outcome.
    Ran,
    /// Nothing: the attempt was stopped or returned.
    Inconclusive,
}

/// The state of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostFailureGuard {
    /// Accepts jobs. These configurations have failed fast since the last trainer that ran.
    Watching(Vec<String>),
    /// Accepts no jobs until this time, a reset by a user, or a restart of the agent. A fast failure after that trips
    /// the guard again, whatever its configuration.
    Tripped {
        /// When a job is accepted again.
        until: Timestamp,
        /// Number of configurations that failed in a row; 1 after a cooldown.
        configs: usize,
        /// The error of the last failure.
        error: String,
    },
}

impl Default for HostFailureGuard {
    fn default() -> Self {
        Self::Watching(Vec::new())
    }
}

impl HostFailureGuard {
    /// Records the end of an attempt.
    #[must_use]
    pub fn record(self, now: Timestamp, evidence: AttemptEvidence<'_>) -> Self {
        match (self, evidence) {
            (Self::Watching(_), AttemptEvidence::Ran) => Self::default(),
            (Self::Watching(mut failed), AttemptEvidence::FailedFast { config, error }) => {
                if !failed.iter().any(|known| known == config) {
                    failed.push(config.to_owned());
                }
                if failed.len() < TRIP_AFTER { Self::Watching(failed) } else { Self::trip(now, TRIP_AFTER, error) }
            }
            (Self::Tripped { until, .. }, AttemptEvidence::Ran) if now >= until => Self::default(),
            (Self::Tripped { until, .. }, AttemptEvidence::FailedFast { error, .. }) if now >= until => {
                Self::trip(now, 1, error)
            }
            (same, _) => same,
        }
    }

    fn trip(now: Timestamp, configs: usize, error: &str) -> Self {
        Self::Tripped { until: now + COOLDOWN, configs, error: error.chars().take(MAX_ERROR_CHARS).collect() }
    }

    /// Returns why no job is accepted, or none if jobs are accepted.
    pub fn block_reason(&self, now: Timestamp) -> Option<String> {
        let Self::Tripped { until, configs, error } = self else { return None };
        (now < *until).then(|| {
            let seconds = FAST_FAILURE.0 / 1_000;
            let cause = if *configs > 1 {
                format!("jobs of {configs} configurations in a row failed within {seconds} s (the last: {error})")
            } else {
                format!("the first job after a pause failed within {seconds} s ({error})")
            };
            let minutes = COOLDOWN.0 / 60_000;
            format!("{cause}. The host is tried again after {minutes} min; drain and resume the worker to try at once")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    fn after(ends: &[Option<&str>]) -> HostFailureGuard {
        ends.iter().fold(HostFailureGuard::default(), |guard, failed| guard.record(NOW, evidence(*failed)))
    }

    fn evidence(failed: Option<&str>) -> AttemptEvidence<'_> {
        failed.map_or(AttemptEvidence::Ran, |config| AttemptEvidence::FailedFast { config, error: "No CUDA" })
    }

    #[test]
    fn three_configurations_in_a_row_trip_the_guard() {
        let (ran, a, b, c) = (None, Some("a"), Some("b"), Some("c"));
        for (ends, trips) in [
            (vec![], false),
            (vec![a, b], false),
            (vec![a, b, c], true),
            (vec![a, a, a, a, a], false),
            (vec![a, b, a, b], false),
            (vec![a, a, b, b, c], true),
            (vec![a, b, ran, c], false),
            (vec![a, ran, a, b, c], true),
            (vec![a, b, c, ran], true),
        ] {
            assert_eq!(after(&ends).block_reason(NOW).is_some(), trips, "{ends:?}");
        }
    }

    #[test]
    fn host_is_tried_again_after_the_cooldown() {
        let tripped = after(&[Some("a"), Some("b"), Some("c")]);
        let cooled_down_at = NOW + COOLDOWN;
        assert!(
            tripped.block_reason(Timestamp(cooled_down_at.0 - 1)).is_some()
                && tripped.block_reason(cooled_down_at).is_none()
        );
        let tripped_again = tripped.clone().record(cooled_down_at, evidence(Some("a")));
        assert!(
            tripped_again.block_reason(cooled_down_at).is_some()
                && tripped_again.block_reason(cooled_down_at + COOLDOWN).is_none(),
            "one failure is enough now"
        );
        let reason = tripped_again.block_reason(cooled_down_at).unwrap_or_default();
        assert!(
            reason.starts_with("the first job after a pause failed within 10 s (No CUDA). The host is tried"),
            "{reason}"
        );
        assert_eq!(
            tripped.clone().record(cooled_down_at, AttemptEvidence::Inconclusive).block_reason(cooled_down_at),
            None
        );
        assert_eq!(tripped.record(cooled_down_at, AttemptEvidence::Ran), HostFailureGuard::default());
    }

    #[test]
    fn stopped_attempts_are_inconclusive() {
        let guard = after(&[Some("a"), Some("b")]);
        assert_eq!(guard.clone().record(NOW, AttemptEvidence::Inconclusive), guard);
    }

    #[test]
    fn block_reason_names_the_error() {
        let reason = after(&[Some("a"), Some("b"), Some("c")]).block_reason(NOW).unwrap_or_default();
        assert!(
            reason.starts_with("jobs of 3 configurations in a row failed within 10 s (the last: No CUDA). "),
            "{reason}"
        );
        let long_error = AttemptEvidence::FailedFast { config: "c", error: &"x".repeat(9_000) };
        let reason = after(&[Some("a"), Some("b")]).record(NOW, long_error).block_reason(NOW).unwrap_or_default();
        assert!(reason.chars().count() <= 256, "the orchestrator stores no more");
    }
}
