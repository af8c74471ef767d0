//! Rate limits: a burst, then a steady rate (generic cell rate algorithm).
//!
//! One number is stored for each key: the time at which its allowance is full again. Keys with a full allowance are
//! removed.

use core::borrow::Borrow;
use core::hash::Hash;
use std::collections::HashMap;

use super::time::{Millis, Timestamp};

/// Maximum number of distinct keys; all further keys share one allowance.
const MAX_KEYS: usize = 100_000;
/// Minimum interval between removals of unused keys.
const SWEEP_INTERVAL: Millis = Millis::from_secs(1);
/// Times are stored in microseconds, because 1000 requests per second is a normal quota.
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A rate and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    burst: i64,
    interval: i64,
}

impl Quota {
    /// Creates a rate per second, with a burst of ten seconds' worth. 0 counts as 1, because a quota of zero is not
    /// supported.
    pub fn per_second(times: u32) -> Self {
        let times = i64::from(times.clamp(1, 1_000_000));
        Self { burst: times * 10, interval: interval_for(MICROS_PER_SECOND, times) }
    }

    /// Creates a rate per hour, and a burst.
    pub fn per_hour(times: u32, burst: u32) -> Self {
        let interval = interval_for(3_600 * MICROS_PER_SECOND, i64::from(times.clamp(1, 1_000_000)));
        Self { burst: i64::from(burst.max(1)), interval }
    }

    /// Creates a rate per minute, and a burst.
    pub fn per_minute(times: u32, burst: u32) -> Self {
        Self {
            burst: i64::from(burst.max(1)),
            interval: interval_for(60 * MICROS_PER_SECOND, i64::from(times.clamp(1, 1_000_000))),
        }
    }
}

/// The time per request, rounded up, so that the rate is never exceeded.
fn interval_for(span: i64, times: i64) -> i64 {
    (span + times - 1) / times
}

/// A rate limiter with an allowance for each key.
#[derive(Debug, Clone)]
pub struct KeyedRateLimiter<K> {
    full_at: HashMap<K, i64>,
    overflow_full_at: i64,
    swept_at: Timestamp,
    capacity: usize,
}

impl<K> Default for KeyedRateLimiter<K> {
    fn default() -> Self {
        Self { full_at: HashMap::new(), overflow_full_at: i64::MIN, swept_at: Timestamp(i64::MIN), capacity: MAX_KEYS }
    }
}

impl<K: Eq + Hash> KeyedRateLimiter<K> {
    /// Takes one request from the allowance of a key.
    ///
    /// # Errors
    ///
    /// Returns how long to wait if the allowance is used up.
    pub fn try_acquire<Q>(&mut self, key: &Q, quota: Quota, now: Timestamp) -> Result<(), Millis>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let micros = to_micros(now);
        if let Some(full_at) = self.full_at.get_mut(key) {
            return try_acquire_at(full_at, quota, micros);
        }
        if self.full_at.len() >= self.capacity {
            self.sweep(now);
        }
        if self.full_at.len() >= self.capacity {
            return try_acquire_at(&mut self.overflow_full_at, quota, micros);
        }
        let mut full_at = i64::MIN;
        let acquired = try_acquire_at(&mut full_at, quota, micros);
        self.full_at.insert(key.to_owned(), full_at);
        acquired
    }

    /// Returns one request to the allowance, for a request that does not count.
    pub fn refund<Q>(&mut self, key: &Q, quota: Quota)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let full_at = self.full_at.get_mut(key).unwrap_or(&mut self.overflow_full_at);
        *full_at = full_at.saturating_sub(quota.interval);
    }

    /// Removes keys with a full allowance.
    fn sweep(&mut self, now: Timestamp) {
        if now - self.swept_at >= SWEEP_INTERVAL {
            self.swept_at = now;
            self.full_at.retain(|_, full_at| *full_at > to_micros(now));
        }
    }
}

fn try_acquire_at(full_at: &mut i64, quota: Quota, now: i64) -> Result<(), Millis> {
    let full_after = (*full_at).max(now) + quota.interval;
    let wait = full_after - now - quota.burst * quota.interval;
    if wait > 0 {
        return Err(Millis((wait + 999) / 1_000));
    }
    *full_at = full_after;
    Ok(())
}

fn to_micros(now: Timestamp) -> i64 {
    now.0.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn second(n: i64) -> Timestamp {
        Timestamp(n * 1_000)
    }

    #[test]
    fn burst_is_followed_by_steady_rate() {
        let (mut limiter, quota) = (KeyedRateLimiter::<String>::default(), Quota::per_minute(10, 3));
        let mut acquire = |key: &str, at| limiter.try_acquire(key, quota, at);
        assert_eq!([0, 0, 0].map(|at| acquire("a", second(at))), [Ok(()); 3]);
        assert_eq!(acquire("a", second(0)), Err(Millis::from_secs(6)));
        assert_eq!(acquire("a", second(5)), Err(Millis::from_secs(1)), "a rejected request costs nothing");
        assert_eq!(acquire("b", second(5)), Ok(()), "keys are independent");
        assert_eq!((acquire("a", second(6)), acquire("a", second(6))), (Ok(()), Err(Millis::from_secs(6))));
        assert_eq!([60, 60, 60].map(|at| acquire("a", second(at))), [Ok(()); 3]);
    }

    #[test]
    fn interval_is_rounded_up() {
        assert_eq!(
            (interval_for(9, 3), interval_for(10, 3), interval_for(MICROS_PER_SECOND, 1)),
            (3, 4, MICROS_PER_SECOND)
        );
    }

    #[test]
    fn burst_is_ten_seconds_worth() {
        for (times, interval) in [(0, 1_000), (1, 1_000), (2, 500), (3, 334), (1_000, 1)] {
            let (mut limiter, quota) = (KeyedRateLimiter::<u8>::default(), Quota::per_second(times));
            let acquired = (0..20_000).take_while(|_| limiter.try_acquire(&1, quota, second(0)).is_ok()).count();
            assert_eq!(
                (acquired, limiter.try_acquire(&1, quota, second(0))),
                (times.max(1) as usize * 10, Err(Millis(interval))),
                "{times}"
            );
        }
    }

    #[test]
    fn refund_restores_the_allowance() {
        let (mut limiter, quota) = (KeyedRateLimiter::<String>::default(), Quota::per_minute(1, 1));
        for _ in 0..5 {
            assert_eq!(limiter.try_acquire("a", quota, second(0)), Ok(()));
            limiter.refund("a", quota);
        }
        limiter.refund("unknown", quota);
        assert_eq!(
            (limiter.try_acquire("a", quota, second(0)), limiter.try_acquire("a", quota, second(0)).is_err()),
            (Ok(()), true)
        );
    }

    #[test]
    fn memory_is_bounded_and_known_keys_are_kept() {
        let mut limiter = KeyedRateLimiter::<u64> { capacity: 10, ..KeyedRateLimiter::default() };
        let quota = Quota::per_minute(60, 2);
        for key in 0..10 {
            assert_eq!(limiter.try_acquire(&key, quota, second(0)), Ok(()));
        }
        let acquired = (10..100).filter(|key| limiter.try_acquire(key, quota, second(0)).is_ok()).count();
        assert_eq!((acquired, limiter.full_at.len()), (2, 10), "keys beyond the bound share one allowance");
        assert_eq!(limiter.try_acquire(&3, quota, second(0)), Ok(()), "and do not affect known keys");
        assert_eq!(limiter.try_acquire(&100, quota, second(1)), Ok(()), "keys with a full allowance are removed");
        assert_eq!(limiter.full_at.len(), 2, "key 3, with two requests, and the new one");
    }

    proptest! {
        #[test]
        fn burst_and_rate_are_never_exceeded(times in 1_u32..2_000, gaps in prop::collection::vec(0_i64..50, 1..500)) {
            let (mut limiter, quota) = (KeyedRateLimiter::<u8>::default(), Quota::per_second(times));
            let (mut now, mut acquired) = (0, 0_i64);
            for gap in gaps {
                now += gap;
                acquired += i64::from(limiter.try_acquire(&1, quota, Timestamp(now)).is_ok());
                let allowed = i64::from(times) * 10 + now * i64::from(times) / 1_000 + 1;
                prop_assert!(acquired <= allowed, "{acquired} of {allowed}");
            }
        }

        #[test]
        fn request_after_the_stated_wait_is_allowed(times in 1_u32..600, requests in 1_usize..200) {
            let (mut limiter, quota) = (KeyedRateLimiter::<u8>::default(), Quota::per_minute(times, 2));
            let mut now = Timestamp(0);
            for _ in 0..requests {
                if let Err(wait) = limiter.try_acquire(&1, quota, now) {
                    now = now + wait;
                    prop_assert_eq!(limiter.try_acquire(&1, quota, now), Ok(()));
                }
            }
        }
    }
}
