//! What must hold at all times, whatever fails: the invariants of ARCHITECTURE.md that an observer can see.

use std::cell::RefCell;
use std::collections::BTreeMap;

use app::domain::ids::{AttemptNumber, JobId};
use app::protocol::status::JobStatus;

use super::property::{
    ATTEMPTS_INCREASE, CLOCK_IS_FREE, ONCE_PER_HOST, ONE_EXCLUSIVE_TRAINER, ONE_JOB_PER_GPU, RESTART_IS_FREE,
    TERMINAL_IS_FINAL, TRAINER_COMPLETES,
};
use crate::worker::files::{AttemptExit, AttemptKey, StopCause};

#[derive(Debug)]
struct Trainer {
    host: usize,
    key: AttemptKey,
    gpus: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Observed {
    status: JobStatus,
    attempt: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    /// If it exited by itself.
    code: Option<i32>,
    /// If it was stopped.
    cause: Option<StopCause>,
    log_length: u64,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<Trainer>,
    /// Trainers that have ended.
    ended: BTreeMap<AttemptKey, Ended>,
    jobs: BTreeMap<JobId, Observed>,
}

fn key(job: &JobId, attempt: u32) -> AttemptKey {
    AttemptKey { job_id: job.clone(), attempt: AttemptNumber(attempt) }
}

/// The observer of one simulation.
#[derive(Debug, Default)]
pub struct Checks(RefCell<State>);

impl Checks {
    /// A trainer starts.
    pub fn trainer_started(&self, host: usize, key: &AttemptKey, is_exclusive: bool, gpus: &[String]) {
        let mut state = self.0.borrow_mut();
        for other in &state.running {
            let beside = || format!("{key} starts on host {host} beside {other:?}");
            let is_same_job = other.key.job_id == key.job_id;
            if is_same_job && is_exclusive {
                ONE_EXCLUSIVE_TRAINER.violated(&beside());
            }
            if is_same_job && other.host == host {
                ONCE_PER_HOST.violated(&beside());
            }
            if other.host == host && other.gpus.iter().any(|gpu| gpus.contains(gpu)) {
                ONE_JOB_PER_GPU.violated(&beside());
            }
        }
        state.running.push(Trainer { host, key: key.clone(), gpus: gpus.to_vec() });
    }

    /// A trainer is gone.
    pub fn trainer_ended(&self, key: &AttemptKey, exit: &AttemptExit, log_length: u64) {
        let mut state = self.0.borrow_mut();
        state.running.retain(|trainer| trainer.key != *key);
        let code = exit.code.filter(|_| exit.stopped.is_none());
        state.ended.insert(key.clone(), Ended { code, cause: exit.stopped, log_length });
    }

    /// The length of what the trainer of an ended attempt wrote.
    pub fn log_length(&self, job: &JobId, attempt: u32) -> u64 {
        self.0.borrow().ended.get(&key(job, attempt)).map_or(0, |ended| ended.log_length)
    }

    /// Without faults of hosts, every attempt but the last has ended by itself, or by the lease of an exclusive job, which
    /// several outages may end.
    pub fn no_attempt_was_lost(&self, job: &JobId, last: u32, has_restarted: bool) {
        let state = self.0.borrow();
        for attempt in 1..last {
            let ended = state.ended.get(&key(job, attempt));
            if !ended.is_some_and(|ended| ended.code.is_some() || ended.cause == Some(StopCause::Lease)) {
                let property = if has_restarted { RESTART_IS_FREE } else { CLOCK_IS_FREE };
                property.violated(&format!("{job} lost attempt {attempt}"));
            }
        }
    }

    /// A user sees a job.
    pub fn job_seen(&self, id: &JobId, status: JobStatus, attempt: u32) {
        let mut state = self.0.borrow_mut();
        if let Some(before) = state.jobs.insert(id.clone(), Observed { status, attempt }) {
            if before.status.is_terminal() && before.status != status {
                TERMINAL_IS_FINAL.violated(&format!("{id} was {:?} and is {status:?}", before.status));
            }
            if attempt < before.attempt {
                ATTEMPTS_INCREASE.violated(&format!("{id} had attempt {} and has {attempt}", before.attempt));
            }
        }
        let code = state.ended.get(&key(id, attempt)).and_then(|ended| ended.code);
        if status == JobStatus::Completed && code != Some(0) {
            TRAINER_COMPLETES
                .violated(&format!("{id} is completed, but the trainer of attempt {attempt} exited with {code:?}"));
        }
    }
}
