//! How often somebody may ask: so many times at once, and then one every so often (the generic cell rate algorithm).
//!
//! Of each who asks one number is kept: the moment at which their allowance is whole again. Who asks seldom is forgotten.

use core::borrow::Borrow;
use core::hash::Hash;
use std::collections::HashMap;

use super::time::{Millis, Timestamp};

/// So many are told apart; the rest shares one allowance.
const MOST: usize = 100_000;
/// So often at most it is looked who can be forgotten.
const SWEEP: Millis = Millis::seconds(1);
/// Moments are kept in millionths of a second: a thousand times a second is a usual allowance.
const SECOND: i64 = 1_000_000;

/// How much is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    at_once: i64,
    every: i64,
}

impl Quota {
    /// So many times a second in the long run, ten seconds' worth at once. Nothing is allowed never: 0 counts as 1.
    pub fn a_second(times: u32) -> Self {
        let times = i64::from(times.clamp(1, 1_000_000));
        Self { at_once: times * 10, every: each(SECOND, times) }
    }

    /// A rate per hour, and a burst.
    pub fn an_hour(times: u32, at_once: u32) -> Self {
        let every = each(3_600 * SECOND, i64::from(times.clamp(1, 1_000_000)));
        Self { at_once: i64::from(at_once.max(1)), every }
    }

    /// So many times a minute in the long run, and so many at once.
    pub fn a_minute(times: u32, at_once: u32) -> Self {
        Self { at_once: i64::from(at_once.max(1)), every: each(60 * SECOND, i64::from(times.clamp(1, 1_000_000))) }
    }
}

/// The time for each of so many, rounded up: never more are let in than was said.
fn each(span: i64, times: i64) -> i64 {
    (span + times - 1) / times
}

/// What each has left.
#[derive(Debug, Clone)]
pub struct Allowances<K> {
    whole_at: HashMap<K, i64>,
    crowd: i64,
    swept_at: Timestamp,
    most: usize,
}

impl<K> Default for Allowances<K> {
    fn default() -> Self {
        Self { whole_at: HashMap::new(), crowd: i64::MIN, swept_at: Timestamp(i64::MIN), most: MOST }
    }
}

impl<K: Eq + Hash> Allowances<K> {
    /// Takes one from what somebody has left, if anything is; else says how long to wait.
    pub fn take<Q>(&mut self, who: &Q, quota: Quota, now: Timestamp) -> Result<(), Millis>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let micros = micros(now);
        if let Some(whole_at) = self.whole_at.get_mut(who) {
            return take(whole_at, quota, micros);
        }
        if self.whole_at.len() >= self.most {
            self.sweep(now);
        }
        if self.whole_at.len() >= self.most {
            return take(&mut self.crowd, quota, micros);
        }
        let mut whole_at = i64::MIN;
        let taken = take(&mut whole_at, quota, micros);
        self.whole_at.insert(who.to_owned(), whole_at);
        taken
    }

    /// Gives back one that was taken and does not count.
    pub fn give_back<Q>(&mut self, who: &Q, quota: Quota)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let whole_at = self.whole_at.get_mut(who).unwrap_or(&mut self.crowd);
        *whole_at = whole_at.saturating_sub(quota.every);
    }

    /// Forgets those who have all that they may have.
    fn sweep(&mut self, now: Timestamp) {
        if now - self.swept_at >= SWEEP {
            self.swept_at = now;
            self.whole_at.retain(|_, whole_at| *whole_at > micros(now));
        }
    }
}

fn take(whole_at: &mut i64, quota: Quota, now: i64) -> Result<(), Millis> {
    let after = (*whole_at).max(now) + quota.every;
    let wait = after - now - quota.at_once * quota.every;
    if wait > 0 {
        return Err(Millis((wait + 999) / 1_000));
    }
    *whole_at = after;
    Ok(())
}

fn micros(now: Timestamp) -> i64 {
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
    fn so_many_at_once_and_then_one_every_so_often() {
        let (mut all, quota) = (Allowances::<String>::default(), Quota::a_minute(10, 3));
        let mut take = |who: &str, at| all.take(who, quota, at);
        assert_eq!([0, 0, 0].map(|at| take("a", second(at))), [Ok(()); 3]);
        assert_eq!(take("a", second(0)), Err(Millis::seconds(6)));
        assert_eq!(take("a", second(5)), Err(Millis::seconds(1)), "asking in vain costs nothing");
        assert_eq!(take("b", second(5)), Ok(()), "another one is another matter");
        assert_eq!((take("a", second(6)), take("a", second(6))), (Ok(()), Err(Millis::seconds(6))));
        assert_eq!([60, 60, 60].map(|at| take("a", second(at))), [Ok(()); 3]);
    }

    #[test]
    fn time_is_shared_out_rounded_up() {
        assert_eq!((each(9, 3), each(10, 3), each(SECOND, 1)), (3, 4, SECOND));
    }

    #[test]
    fn ten_seconds_worth_at_once() {
        for (times, every) in [(0, 1_000), (1, 1_000), (2, 500), (3, 334), (1_000, 1)] {
            let (mut all, quota) = (Allowances::<u8>::default(), Quota::a_second(times));
            let taken = (0..20_000).take_while(|_| all.take(&1, quota, second(0)).is_ok()).count();
            assert_eq!(
                (taken, all.take(&1, quota, second(0))),
                (times.max(1) as usize * 10, Err(Millis(every))),
                "{times}"
            );
        }
    }

    #[test]
    fn what_is_given_back_was_not_taken() {
        let (mut all, quota) = (Allowances::<String>::default(), Quota::a_minute(1, 1));
        for _ in 0..5 {
            assert_eq!(all.take("a", quota, second(0)), Ok(()));
            all.give_back("a", quota);
        }
        all.give_back("nobody", quota);
        assert_eq!((all.take("a", quota, second(0)), all.take("a", quota, second(0)).is_err()), (Ok(()), true));
    }

    #[test]
    fn memory_has_a_bound_and_who_is_known_is_not_pushed_out() {
        let mut all = Allowances::<u64> { most: 10, ..Allowances::default() };
        let quota = Quota::a_minute(60, 2);
        for who in 0..10 {
            assert_eq!(all.take(&who, quota, second(0)), Ok(()));
        }
        let crowd = (10..100).filter(|who| all.take(who, quota, second(0)).is_ok()).count();
        assert_eq!((crowd, all.whole_at.len()), (2, 10), "strangers beyond the bound share one allowance");
        assert_eq!(all.take(&3, quota, second(0)), Ok(()), "and take nothing from the others");
        assert_eq!(all.take(&100, quota, second(1)), Ok(()), "those with all they may have are forgotten");
        assert_eq!(all.whole_at.len(), 2, "3, who has taken twice, and the new one");
    }

    proptest! {
        #[test]
        fn never_more_than_the_burst_and_the_rate(times in 1_u32..2_000, gaps in prop::collection::vec(0_i64..50, 1..500)) {
            let (mut all, quota) = (Allowances::<u8>::default(), Quota::a_second(times));
            let (mut now, mut taken) = (0, 0_i64);
            for gap in gaps {
                now += gap;
                taken += i64::from(all.take(&1, quota, Timestamp(now)).is_ok());
                let allowed = i64::from(times) * 10 + now * i64::from(times) / 1_000 + 1;
                prop_assert!(taken <= allowed, "{taken} of {allowed}");
            }
        }

        #[test]
        fn who_waits_as_told_is_let_in(times in 1_u32..600, tries in 1_usize..200) {
            let (mut all, quota) = (Allowances::<u8>::default(), Quota::a_minute(times, 2));
            let mut now = Timestamp(0);
            for _ in 0..tries {
                if let Err(wait) = all.take(&1, quota, now) {
                    now = now + wait;
                    prop_assert_eq!(all.take(&1, quota, now), Ok(()));
                }
            }
        }
    }
}
