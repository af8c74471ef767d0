//! A server that remembers the last round plans as one that does not.

use std::collections::BTreeMap;

use super::server::SimulatedServer;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::job::Job;
use crate::domain::matching::Candidate;
use crate::domain::plan::{Assignment, JobQueue, QueuedJob, UnmatchedKinds, job_kind, plan};
use crate::domain::worker::Worker;

/// What the server remembers.
#[derive(Default)]
pub(super) struct LastRound {
    unmatched: UnmatchedKinds,
    /// One job of each kind, by number.
    kinds: Vec<Job>,
    /// The workers at that time, each with the GPUs of its leases.
    workers: Vec<(Worker, Vec<Vec<String>>)>,
}

impl LastRound {
    /// Plans with the result of the last round, and remembers this one.
    pub fn plan<'s>(&mut self, server: &'s SimulatedServer) -> (Vec<Assignment>, BTreeMap<&'s WorkerId, &'s JobId>) {
        let mut all = server.fleet();
        all.load_all();
        let changed = all.candidates.iter().filter(|candidate| !self.workers.contains(&state(candidate)));
        let with_capacity: Vec<Candidate<'_>> = changed.filter(|candidate| candidate.has_capacity()).cloned().collect();
        let fleet = server.fleet().since_last_round(std::mem::take(&mut self.unmatched), with_capacity);
        let plan = plan(self.queue(server.waiting()), fleet, server.now);
        let is_assigned = |id: &WorkerId| plan.assignments.iter().any(|assignment| assignment.worker == *id);
        // The offers change the others.
        self.workers = all.candidates.iter().filter(|other| !is_assigned(&other.worker.id)).map(state).collect();
        self.unmatched = plan.unmatched;
        (plan.assignments, plan.reserved)
    }

    fn queue<'w>(&mut self, waiting: Vec<&'w Job>) -> JobQueue<'w> {
        let jobs: Vec<QueuedJob<'w>> =
            waiting.into_iter().map(|job| QueuedJob { job, kind: self.number(job) }).collect();
        let kinds = (0..self.kinds.len()).filter(|kind| jobs.iter().any(|queued| queued.kind == *kind)).count();
        JobQueue::of_kinds(jobs, kinds)
    }

    fn number(&mut self, job: &Job) -> usize {
        let known = self.kinds.iter().position(|other| job_kind(other) == job_kind(job));
        known.unwrap_or_else(|| {
            self.kinds.push(job.clone());
            self.kinds.len() - 1
        })
    }
}

fn state(candidate: &Candidate<'_>) -> (Worker, Vec<Vec<String>>) {
    let held = candidate.held_gpus.iter().map(|gpus| gpus.iter().map(|uuid| (*uuid).to_owned()).collect());
    (candidate.worker.clone(), held.collect())
}
