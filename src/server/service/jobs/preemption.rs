//! Stops running jobs so that waiting ones can start (`domain/preemption`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use app::domain::audit::AuditAction;
use app::domain::ids::JobId;
use app::domain::job::{AttemptReport, Job, JobState, Preemption};
use app::domain::preemption::{PreemptionInput, RunningAttempt, plan_preemptions};
use app::domain::time::{Millis, Timestamp};
use app::protocol::topic::Topic;
use serde_json::json;

use crate::service::ServiceContext;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::artifacts::checkpoints::NewestCheckpoint;
use crate::store::cache::state::FleetState;

/// The newest checkpoints, by job.
type Checkpoints = HashMap<JobId, NewestCheckpoint>;

/// A pass that stopped nothing is not repeated for the same jobs within this time.
const REPEATED_AFTER: Millis = Millis::from_secs(30);

/// The last pass that could have stopped running jobs and did not: for which waiting jobs, and when.
#[derive(Debug, Default)]
pub struct FruitlessPass(Mutex<Option<(Vec<JobId>, Timestamp)>>);

impl FruitlessPass {
    fn is_repeated(&self, jobs: &[JobId], now: Timestamp) -> bool {
        let last = self.0.lock().expect("no panic while it is held");
        last.as_ref().is_some_and(|(last, at)| last == jobs && now - *at < REPEATED_AFTER)
    }

    fn set(&self, jobs: Option<(Vec<JobId>, Timestamp)>) {
        *self.0.lock().expect("no panic while it is held") = jobs;
    }
}

impl JobService {
    /// Decides which running jobs are stopped for waiting ones; returns the number of stopped attempts.
    pub async fn preempt(self: &Arc<Self>) -> Result<usize, ServiceError> {
        // Most passes find nothing, and a read is cheaper than an empty commit.
        let (context, now) = (Arc::clone(&self.context), self.context.now());
        let find = move |state: &FleetState| {
            let has_expired = state.preempting_jobs().any(|job| has_expired(job, now));
            (has_expired, jobs_that_may_preempt(&context, state, now))
        };
        let (has_expired, waiting) = self.context.read_recent().await?.with_state(find).await?;
        if !has_expired && (waiting.is_empty() || self.fruitless_pass.is_repeated(&waiting, now)) {
            return Ok(0);
        }
        let stopped = self.context.change(Caller::system(), |unit| Box::pin(preempt_in(unit))).await?;
        self.fruitless_pass.set((stopped == 0).then_some((waiting, now)));
        Ok(stopped)
    }
}

/// The waiting jobs for which others may be stopped, as far as can be known without checkpoints: every attempt counts as one
/// that has one, and only workers with jobs are compared.
fn jobs_that_may_preempt(context: &ServiceContext, state: &FleetState, now: Timestamp) -> Vec<JobId> {
    let decided = decide(context, state, now, Compared::WithJobs, &|running| RunningAttempt {
        checkpoint: Some(running.since),
        ..running
    });
    decided.into_iter().map(|(job, _)| job.id).collect()
}

/// Which workers are compared with waiting jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    WithJobs,
    All,
}

fn has_expired(job: &Job, now: Timestamp) -> bool {
    job.preemption().is_some_and(|preemption| !preemption.holds(now))
}

async fn preempt_in(unit: &mut UnitOfWork<'_>) -> Result<usize, ServiceError> {
    let (context, now) = (unit.context, unit.now);
    let expired = |state: &FleetState| -> Vec<Arc<Job>> {
        state.preempting_jobs().filter(|job| has_expired(job, now)).cloned().collect()
    };
    for job in unit.tx.with_state(expired).await? {
        let after = Job::clone(&job).preempting(None);
        unit.tx.update_job(&job, &after).await?;
        unit.notify(Topic::Job(job.id.clone()));
    }
    let running: Vec<JobId> =
        unit.tx.with_state(|state| state.jobs_with_lease().map(|job| job.id.clone()).collect()).await?;
    let checkpoints: Checkpoints =
        unit.tx.newest_checkpoints(&running).await?.into_iter().map(|newest| (newest.job.clone(), newest)).collect();
    let decide = |state: &FleetState| {
        decide(context, state, now, Compared::All, &|running| {
            let newest = checkpoints.get(&running.job.id).filter(|newest| newest.attempt == running.lease.attempt);
            let checkpoint = newest.map(|newest| newest.created_at);
            RunningAttempt { checkpoint, interval: newest.and_then(|newest| newest.interval), ..running }
        })
    };
    let decided = unit.tx.with_state(decide).await?;
    let mut stopped = 0;
    for (before, preemption) in decided {
        stopped += preemption.attempts.len();
        save_decision(unit, &before, preemption).await?;
    }
    Ok(stopped)
}

async fn save_decision(unit: &mut UnitOfWork<'_>, before: &Job, preemption: Preemption) -> Result<(), ServiceError> {
    let after = before.clone().preempting(Some(preemption.clone()));
    unit.tx.update_job(before, &after).await?;
    for attempt in &preemption.attempts {
        let detail = json!({
            "attempt": attempt.attempt,
            "worker_id": preemption.worker,
            "for": before.id,
            "reason": preemption.reason.as_str(),
            "until": attempt.stop_at,
        });
        unit.record(AuditAction::JobPreempting, attempt.job.as_str(), &detail).await?;
        unit.notify(Topic::Job(attempt.job.clone()));
    }
    unit.notify(Topic::Worker(preemption.worker.clone()));
    unit.notify(Topic::Job(before.id.clone()));
    unit.notify(Topic::Jobs);
    unit.request_planning();
    Ok(())
}

fn decide(
    context: &ServiceContext,
    state: &FleetState,
    now: Timestamp,
    compared: Compared,
    with_checkpoint: &dyn for<'w> Fn(RunningAttempt<'w>) -> RunningAttempt<'w>,
) -> Vec<(Job, Preemption)> {
    if state.queued_jobs().next().is_none() {
        return Vec::new();
    }
    let running: HashMap<&JobId, RunningAttempt<'_>> = state
        .jobs_with_lease()
        .filter_map(|job| {
            let JobState::Running { lease, since } = &job.state else { return None };
            let running = RunningAttempt { job, lease, since: *since, checkpoint: None, interval: None };
            Some((&job.id, with_checkpoint(running)))
        })
        .collect();
    if running.is_empty() {
        return Vec::new();
    }
    let mut fleet = context.policy.planner_fleet(state, now);
    let candidates = match compared {
        Compared::WithJobs => context.policy.workers_with_jobs(state),
        Compared::All => {
            fleet.load_all();
            fleet.candidates
        }
    };
    let input =
        PreemptionInput { waiting: state.queue_in_order(now).collect(), candidates, running, shares: fleet.shares };
    plan_preemptions(input, now).into_iter().map(|(job, preemption)| (job.clone(), preemption)).collect()
}

impl UnitOfWork<'_> {
    /// Stops an attempt that is to be stopped after its next checkpoint, because it has one now.
    pub(in crate::service) async fn stop_after_checkpoint(&mut self, job: &Job) -> Result<(), ServiceError> {
        let (id, now) = (job.id.clone(), self.now);
        let waiting = self.tx.with_state(|state| state.preempted_by(&id).map(|(job, _)| Arc::clone(job))).await?;
        let Some(before) = waiting else { return Ok(()) };
        let preemption = before.preemption().cloned().map(|preemption| preemption.with_checkpoint(&job.id, now));
        let after = Job::clone(&before).preempting(preemption);
        if after != *before {
            self.tx.update_job(&before, &after).await?;
            if let Some(lease) = job.active_lease() {
                self.notify(Topic::Worker(lease.worker.clone()));
            }
        }
        Ok(())
    }

    /// Returns the report of an attempt that was stopped for another job; none if it was not.
    pub(in crate::service) async fn preempted_report(
        &mut self,
        job: &Job,
    ) -> Result<Option<AttemptReport>, ServiceError> {
        let now = self.now;
        let by = |state: &FleetState| {
            let (waiting, attempt) = state.preempted_by(&job.id)?;
            (attempt.attempt == job.attempt && attempt.stop_at <= now).then(|| waiting.id.clone())
        };
        let Some(by) = self.tx.with_state(by).await? else { return Ok(None) };
        let newest = self.tx.newest_checkpoints(std::slice::from_ref(&job.id)).await?.into_iter().next();
        let step = newest.as_ref().and_then(|newest| u64::try_from(newest.step).ok());
        let saved = newest.filter(|newest| newest.attempt == job.attempt).map(|newest| newest.created_at);
        let started = if let JobState::Running { since, .. } = &job.state { *since } else { now };
        let lost = Millis((now - saved.unwrap_or(started)).0.max(0));
        Ok(Some(AttemptReport::Preempted { by, lost, step }))
    }
}
