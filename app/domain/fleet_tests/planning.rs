//! Checks a plan against the model: the jobs of the user who has the least come first, then in order of urgency, each offered
//! to a worker that fits.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::model::{FleetModel, ModelConnection, ModelJob};
use super::server::HEARTBEAT_TIMEOUT;
use crate::domain::gpu::Gpu;
use crate::domain::job::JobTarget;
use crate::domain::plan::{AGING_PER_POINT, STARVATION_AFTER};

/// The planner's result, by indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedRound {
    /// Job, worker, GPUs.
    pub offers: Vec<(usize, usize, Vec<String>)>,
    /// Worker, and the job that it is reserved for.
    pub reserved: Vec<(usize, usize)>,
}

impl FleetModel {
    /// Checks a round, and applies its offers.
    pub fn plan(&mut self, round: &PlannedRound) -> Result<(), TestCaseError> {
        let (mut offers, mut reserved) = (round.offers.iter().peekable(), Vec::new());
        let mut waiting = self.queue();
        while let Some(next) = self.next_in(&waiting) {
            let job = waiting.remove(next);
            if let Some((_, worker, gpus)) = offers.next_if(|(offered, ..)| *offered == job) {
                prop_assert!(!self.is_over_limit(job), "job {job} is offered beyond the limits");
                prop_assert!(
                    !reserved.contains(worker),
                    "job {job} gets worker {worker}, which is reserved for another"
                );
                self.check_assignment(job, *worker, gpus)?;
                self.check_no_second_trainer(job)?;
                self.offer(job, *worker, gpus.clone());
            } else if !self.is_over_limit(job) {
                let matching_worker =
                    (0..self.workers.len()).find(|worker| !reserved.contains(worker) && self.fits(job, *worker));
                prop_assert_eq!(matching_worker, None, "job {} is pending, although a worker could run it (I4)", job);
                self.check_reserved(job, round, &mut reserved)?;
            }
        }
        prop_assert_eq!(offers.next(), None, "offered out of order");
        Ok(())
    }

    /// Pending and eligible jobs: an hour of waiting counts as much as one point of priority.
    fn queue(&self) -> Vec<usize> {
        let is_eligible = |job: &usize| self.jobs[*job].earliest_offer().is_some_and(|at| at <= self.now);
        let mut queue: Vec<usize> = (0..self.jobs.len()).filter(is_eligible).collect();
        let effective_submit_time = |job: &ModelJob| job.submitted_at.0 - i64::from(job.priority) * AGING_PER_POINT.0;
        queue.sort_by_key(|job| (effective_submit_time(&self.jobs[*job]), self.jobs[*job].submitted_at));
        queue
    }

    /// Returns the index of the next job: the first of the user who has the smallest part of the fleet's GPUs or slots,
    /// whichever is larger.
    fn next_in(&self, waiting: &[usize]) -> Option<usize> {
        let listening = self.workers.iter().filter(|worker| !worker.removed);
        let listening: Vec<_> =
            listening.filter(|worker| matches!(worker.connection, ModelConnection::Listening(_))).collect();
        let (gpus, slots) = (
            listening.iter().map(|worker| worker.host.gpus.len()).sum::<usize>().max(1),
            listening.iter().map(|worker| worker.host.max_jobs as usize).sum::<usize>().max(1),
        );
        // Both parts have the same denominator.
        let part = |by: &str| {
            let held: Vec<&ModelJob> =
                self.jobs.iter().filter(|job| job.request.by == by && job.holder().is_some()).collect();
            let held_gpus: usize = held.iter().map(|job| job.offers.last().expect("held").1.len()).sum();
            (held_gpus * slots).max(held.len() * gpus)
        };
        (0..waiting.len()).min_by_key(|index| {
            let by = self.jobs[waiting[*index]].request.by;
            (part(by), by, *index)
        })
    }

    fn is_over_limit(&self, job: usize) -> bool {
        let by = self.jobs[job].request.by;
        let held_jobs: Vec<&ModelJob> = self.jobs.iter().filter(|job| job.holder().is_some()).collect();
        let user_jobs = held_jobs.iter().filter(|job| job.request.by == by).count();
        let reached = |limit: Option<u32>, count| limit.is_some_and(|limit| count >= limit as usize);
        reached(self.limits.jobs, held_jobs.len()) || reached(self.limits.jobs_per_user, user_jobs)
    }

    fn fits(&self, job: usize, worker: usize) -> bool {
        let state = &self.workers[worker];
        let receives_offers =
            matches!(state.connection, ModelConnection::Listening(_)) && state.unassigned_run.is_none();
        let has_slot = self.held_by(worker).count() < self.workers[worker].host.max_jobs as usize;
        receives_offers
            && has_slot
            && self.could_run_later(job, worker)
            && self.free_gpus(job, worker).len() >= self.required_gpu_count(job, worker)
    }

    /// Whether the job matches except for blockers that disappear by waiting.
    fn could_run_later(&self, job: usize, worker: usize) -> bool {
        let (request, state) = (&self.jobs[job].request, &self.workers[worker]);
        let matches_target = match request.target {
            JobTarget::Auto => true,
            JobTarget::Worker => !state.host.local,
            JobTarget::Local => state.host.local,
        };
        let accepts_jobs = state.is_connected() && state.drain.is_none() && !state.retired && !state.removed;
        let matches_rack = request.rack.is_none_or(|rack| state.rack == Some(rack));
        let can_be_stopped = !(request.exclusive && state.host.older);
        matches_target
            && accepts_jobs
            && matches_rack
            && can_be_stopped
            && self.suitable_gpus(job, worker).count() >= self.required_gpu_count(job, worker)
    }

    /// Number of GPUs that the job gets on this worker.
    fn required_gpu_count(&self, job: usize, worker: usize) -> usize {
        let request = &self.jobs[job].request;
        let has_any = !self.workers[worker].host.gpus.is_empty();
        let minimum = usize::from(has_any || request.vram_gb.is_some());
        request.gpus.map_or(minimum, |count| count as usize)
    }

    /// GPUs that the job can use and that have enough memory.
    fn suitable_gpus(&self, job: usize, worker: usize) -> impl Iterator<Item = &String> {
        let min_gb = self.jobs[job].request.vram_gb.map_or(0.0, f64::from);
        let has_memory = move |gpu: &&Gpu| gpu.vram_gb.is_some_and(|gb| gb >= min_gb);
        self.usable_gpus(worker).filter(has_memory).map(|gpu| &gpu.uuid)
    }

    fn free_gpus(&self, job: usize, worker: usize) -> Vec<&String> {
        let used: Vec<&String> = self.held_by(worker).flat_map(|job| &job.offers.last().expect("held").1).collect();
        self.suitable_gpus(job, worker).filter(|gpu| !used.contains(gpu)).collect()
    }

    fn check_assignment(&self, job: usize, worker: usize, gpus: &[String]) -> Result<(), TestCaseError> {
        prop_assert!(self.fits(job, worker), "job {job} does not fit worker {worker}");
        let (free_gpus, takes_whole_host) = (self.free_gpus(job, worker), self.workers[worker].host.max_jobs == 1);
        let number = if takes_whole_host { free_gpus.len() } else { self.required_gpu_count(job, worker) };
        let chosen = free_gpus.into_iter().filter(|gpu| gpus.contains(gpu)).count();
        prop_assert_eq!((gpus.len(), chosen), (number, number), "free GPUs, as many as required (I3)");
        Ok(())
    }

    /// No trainer of an exclusive job may still run: its agent has reported the end, or must have stopped it by now
    /// (I1).
    fn check_no_second_trainer(&self, job: usize) -> Result<(), TestCaseError> {
        let job = &self.jobs[job];
        let ended = job.renewed_at.is_none_or(|at| self.now - at >= HEARTBEAT_TIMEOUT);
        prop_assert!(!job.request.exclusive || ended, "two trainers of one exclusive job may run");
        Ok(())
    }

    /// A job that has waited too long reserves one worker, if one matches.
    fn check_reserved(&self, job: usize, round: &PlannedRound, reserved: &mut Vec<usize>) -> Result<(), TestCaseError> {
        let reserved_workers: Vec<usize> =
            round.reserved.iter().filter(|(_, reserved_for)| *reserved_for == job).map(|(worker, _)| *worker).collect();
        let starves = self.now - self.jobs[job].submitted_at >= STARVATION_AFTER;
        let candidates: Vec<usize> = (0..self.workers.len())
            .filter(|worker| !reserved.contains(worker) && self.could_run_later(job, *worker))
            .collect();
        prop_assert!(
            reserved_workers.iter().all(|worker| starves && candidates.contains(worker)),
            "reserved without need"
        );
        let expected_reservations = usize::from(starves && !candidates.is_empty());
        // Nothing is reserved when there is no capacity left.
        prop_assert!(
            reserved_workers.len() == expected_reservations || !self.has_capacity(),
            "job {job} reserves {reserved_workers:?} of {candidates:?}"
        );
        reserved.extend(reserved_workers);
        Ok(())
    }

    fn has_capacity(&self) -> bool {
        let can_accept = |worker: usize| {
            let state = &self.workers[worker];
            let receives_offers =
                matches!(state.connection, ModelConnection::Listening(_)) && state.unassigned_run.is_none();
            let accepts_jobs = receives_offers && state.drain.is_none() && !state.removed && self.can_run_jobs(worker);
            accepts_jobs && self.held_by(worker).count() < state.host.max_jobs as usize
        };
        (0..self.workers.len()).any(can_accept)
    }
}
