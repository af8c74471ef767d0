//! Admits registrations at the rate at which the server completes them.
//!
//! After a restart all agents register at once. Requests that wait for too long time out and are sent again, so that a
//! large fleet may never finish. Above a limit, the response says when the agent may try again.

use std::sync::{Arc, Mutex, MutexGuard};

use app::domain::time::{Millis, Timestamp};

use crate::service::ServiceContext;
use crate::service::error::ServiceError;

/// Registrations in progress; at a thousand per second, the last one waits for a quarter of a second.
const MAX_IN_PROGRESS: usize = 256;
/// The assumed number of registrations per second, as long as it is not measured, and the least one.
const MIN_RATE: i64 = 200;
/// The longest time that an agent waits for its turn; it accepts five minutes.
const MAX_WAIT: Millis = Millis::from_secs(240);
/// The shortest time over which the rate is measured.
const MEASURED_TIME: Millis = Millis::from_secs(1);

#[derive(Default)]
pub struct RegistrationAdmission(Arc<Mutex<AdmissionState>>);

struct AdmissionState {
    in_progress: usize,
    /// When the next rejected agent has its turn.
    next_turn: Timestamp,
    /// Registrations per second.
    rate: i64,
    measured_since: Timestamp,
    completed: i64,
}

impl Default for AdmissionState {
    fn default() -> Self {
        let start = Timestamp(0);
        Self { in_progress: 0, next_turn: start, rate: MIN_RATE, measured_since: start, completed: 0 }
    }
}

impl AdmissionState {
    /// Returns the time until the agent's turn, if the registration may not begin now.
    fn begin(&mut self, now: Timestamp) -> Result<(), Millis> {
        if self.in_progress < MAX_IN_PROGRESS {
            if self.in_progress == 0 {
                (self.measured_since, self.completed) = (now, 0);
            }
            self.in_progress += 1;
            return Ok(());
        }
        let turn = self.next_turn.clamp(now + MEASURED_TIME, now + MAX_WAIT);
        // Some of the capacity is for agents that were not told to wait.
        self.next_turn = turn + Millis((1_250 / self.rate).max(1));
        Err(turn - now)
    }

    fn end(&mut self, now: Timestamp) {
        self.in_progress -= 1;
        self.completed += 1;
        let measured = now - self.measured_since;
        if measured >= MEASURED_TIME {
            self.rate = (self.completed * 1_000 / measured.0).max(MIN_RATE);
            (self.measured_since, self.completed) = (now, 0);
        }
    }
}

/// A registration in progress.
pub struct RegistrationPermit<'c> {
    state: Arc<Mutex<AdmissionState>>,
    context: &'c ServiceContext,
}

impl RegistrationAdmission {
    /// Begins a registration, or returns when the agent is to try again.
    pub fn begin<'c>(&self, context: &'c ServiceContext) -> Result<RegistrationPermit<'c>, ServiceError> {
        let admitted = lock(&self.0).begin(context.now());
        admitted.map_err(|wait| ServiceError::TooManyRegistrations { wait })?;
        Ok(RegistrationPermit { state: Arc::clone(&self.0), context })
    }
}

impl Drop for RegistrationPermit<'_> {
    fn drop(&mut self) {
        lock(&self.state).end(self.context.now());
    }
}

fn lock(state: &Mutex<AdmissionState>) -> MutexGuard<'_, AdmissionState> {
    state.lock().expect("no panic while it is held")
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000);

    fn full() -> AdmissionState {
        let mut state = AdmissionState::default();
        for _ in 0..MAX_IN_PROGRESS {
            assert_eq!(state.begin(START), Ok(()));
        }
        state
    }

    #[test]
    fn agents_above_the_limit_have_turns_one_after_the_other() {
        let mut state = full();
        let waits: Vec<Millis> = (0..3).filter_map(|_| state.begin(START).err()).collect();
        assert_eq!(waits, [Millis(1_000), Millis(1_006), Millis(1_012)], "at the assumed rate");
        state.end(START);
        assert_eq!(state.begin(START), Ok(()), "a registration below the limit is admitted");
        assert_eq!(state.begin(START + Millis(5_000)), Err(Millis(1_000)), "the turns that have passed do not count");
    }

    #[test]
    fn turns_follow_the_measured_rate() {
        let mut state = full();
        for n in 0..1_000 {
            state.end(START + Millis(n));
            assert_eq!(state.begin(START + Millis(n)), Ok(()));
        }
        state.end(START + Millis(1_000));
        assert_eq!(state.rate, 1_001);
        assert_eq!(state.begin(START + Millis(1_000)), Ok(()));
        let waits: Vec<Millis> = (0..2_000).filter_map(|_| state.begin(START + Millis(1_000)).err()).collect();
        assert_eq!((waits[0], waits[1_999]), (Millis(1_000), Millis(2_999)), "one per millisecond");
        assert!((0..300_000).filter_map(|_| state.begin(START).err()).all(|wait| wait <= MAX_WAIT));
    }
}
