//! Rate limits: a burst, then a steady rate (generic cell rate algorithm).
//!
//! One time is stored for each key: when its allowance is full again. Keys with a full allowance are removed. Servers that
//! share a limit send each other their charges.

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

/// Charges of a key are sent to other servers once they reach the burst divided by this.
const SHARE_DIVISOR: i64 = 50;

/// What is known of a key.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    full_at: i64,
    /// Charges minus refunds that were not sent to other servers.
    unshared: i64,
}

/// The time per request, rounded up, so that the rate is never exceeded.
fn interval_for(span: i64, times: i64) -> i64 {
    (span + times - 1) / times
}

/// A rate limiter with an allowance for each key.
#[derive(Debug, Clone)]
pub struct KeyedRateLimiter<K> {
    allowances: HashMap<K, Allowance>,
    overflow_full_at: i64,
    swept_at: Timestamp,
    capacity: usize,
}

impl<K> Default for KeyedRateLimiter<K> {
    fn default() -> Self {
        Self {
            allowances: HashMap::new(),
            overflow_full_at: i64::MIN,
            swept_at: Timestamp(i64::MIN),
            capacity: MAX_KEYS,
        }
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
        let Some(allowance) = self.allowance(key, now) else {
            return try_acquire_at(&mut self.overflow_full_at, quota, micros);
        };
        try_acquire_at(&mut allowance.full_at, quota, micros)?;
        allowance.unshared += 1;
        Ok(())
    }

    /// The allowance of a key; `None` if there are too many keys.
    fn allowance<Q>(&mut self, key: &Q, now: Timestamp) -> Option<&mut Allowance>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if !self.allowances.contains_key(key) {
            if self.allowances.len() >= self.capacity {
                self.sweep(now);
            }
            if self.allowances.len() >= self.capacity {
                return None;
            }
            self.allowances.insert(key.to_owned(), Allowance { full_at: i64::MIN, unshared: 0 });
        }
        self.allowances.get_mut(key)
    }

    /// Returns how often keys were charged since the last call, for those that were charged often enough to matter to
    /// other servers.
    pub fn take_unshared(&mut self, quota: Quota) -> Vec<(K, i64)>
    where
        K: Clone,
    {
        let min = (quota.burst / SHARE_DIVISOR).max(1);
        let due = self.allowances.iter_mut().filter(|(_, allowance)| allowance.unshared.abs() >= min);
        due.map(|(key, allowance)| (key.clone(), core::mem::take(&mut allowance.unshared))).collect()
    }

    /// Applies charges of another server: `times` requests, negative for refunds. They use up at most the burst.
    pub fn charge_shared<Q>(&mut self, key: &Q, times: i64, quota: Quota, now: Timestamp)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let micros = to_micros(now);
        let Some(allowance) = self.allowance(key, now) else { return };
        let charged = allowance.full_at.max(micros).saturating_add(quota.interval.saturating_mul(times));
        allowance.full_at = charged.min(micros.saturating_add(quota.burst * quota.interval));
    }

    /// Returns one request to the allowance, for a request that does not count.
    pub fn refund<Q>(&mut self, key: &Q, quota: Quota)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let full_at = match self.allowances.get_mut(key) {
            Some(allowance) => {
                allowance.unshared -= 1;
                &mut allowance.full_at
            }
            None => &mut self.overflow_full_at,
        };
        *full_at = full_at.saturating_sub(quota.interval);
    }

    /// Removes keys with a full allowance.
    fn sweep(&mut self, now: Timestamp) {
        if now - self.swept_at >= SWEEP_INTERVAL {
            self.swept_at = now;
            self.allowances.retain(|_, allowance| allowance.full_at > to_micros(now));
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
    fn charges_of_another_server_count_here() {
        let (mut local, mut remote) = (KeyedRateLimiter::<u8>::default(), KeyedRateLimiter::<u8>::default());
        let quota = Quota::per_minute(60, 10);
        let acquire = |limiter: &mut KeyedRateLimiter<u8>| limiter.try_acquire(&1, quota, second(0)).is_ok();
        let share = |from: &mut KeyedRateLimiter<u8>, to: &mut KeyedRateLimiter<u8>| {
            for (key, times) in from.take_unshared(quota) {
                to.charge_shared(&key, times, quota, second(0));
            }
        };
        assert!((0..6).all(|_| acquire(&mut remote)));
        share(&mut remote, &mut local);
        share(&mut remote, &mut local);
        assert_eq!((0..10).filter(|_| acquire(&mut local)).count(), 4, "each charge counts once");
        for _ in 0..3 {
            remote.refund(&1, quota);
        }
        share(&mut remote, &mut local);
        assert_eq!((0..10).filter(|_| acquire(&mut local)).count(), 3, "and so does each refund");
        local.charge_shared(&1, i64::MAX, quota, second(0));
        assert_eq!(local.try_acquire(&1, quota, second(1)), Ok(()), "no wait is longer than after a burst");
    }

    #[test]
    fn few_charges_of_a_large_quota_are_not_shared() {
        let (mut limiter, quota) = (KeyedRateLimiter::<u8>::default(), Quota::per_second(100));
        let charge = |limiter: &mut KeyedRateLimiter<u8>, times: usize| {
            (0..times).for_each(|_| assert_eq!(limiter.try_acquire(&1, quota, second(0)), Ok(())));
            limiter.take_unshared(quota)
        };
        assert_eq!(charge(&mut limiter, 19), []);
        assert_eq!(charge(&mut limiter, 1), [(1, 20)]);
        assert_eq!(charge(&mut limiter, 0), []);
    }

    #[test]
    fn memory_is_bounded_and_known_keys_are_kept() {
        let mut limiter = KeyedRateLimiter::<u64> { capacity: 10, ..KeyedRateLimiter::default() };
        let quota = Quota::per_minute(60, 2);
        for key in 0..10 {
            assert_eq!(limiter.try_acquire(&key, quota, second(0)), Ok(()));
        }
        let acquired = (10..100).filter(|key| limiter.try_acquire(key, quota, second(0)).is_ok()).count();
        assert_eq!((acquired, limiter.allowances.len()), (2, 10), "keys beyond the bound share one allowance");
        assert_eq!(limiter.try_acquire(&3, quota, second(0)), Ok(()), "and do not affect known keys");
        assert_eq!(limiter.try_acquire(&100, quota, second(1)), Ok(()), "keys with a full allowance are removed");
        assert_eq!(limiter.allowances.len(), 2, "key 3, with two requests, and the new one");
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
