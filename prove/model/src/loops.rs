//! What servers do by themselves: planning, the passes over offers and silent workers, and their start.

use app::domain::explain::{ExplainVerdict, explain};
use app::domain::job::{AttemptLoss, Job, JobState};
use app::domain::liveness::{LivenessVerdict, judge_liveness};
use app::domain::plan::{self, ConcurrencyLimits, JobQueue, PlannerFleet};
use app::domain::time::Timestamp;
use app::domain::worker::{OfflineCause, Worker};

use crate::config::Mutation;
use crate::rows::{JobRow, job_index};
use crate::service::Service;
use crate::ticks::{NOW, OFFER_TIMEOUT, TIMEOUT, duration, timestamp};
use crate::violations::Violation;
use crate::workers::{ConnectionRow, stream_id};

impl Service<'_> {
    /// `plan` in `jobs/dispatch.rs`. Afterwards no job is pending that fits (I4).
    pub fn plan(&mut self) {
        let has_queued = |row: &JobRow| row.active_lease().is_none() && !row.has_ended();
        if !self.world.database.jobs.iter().flatten().any(has_queued) {
            return;
        }
        let (jobs, workers) = self.protocol.load(&self.world.database);
        let assignments = plan::plan(JobQueue::new(waiting(&jobs)), fleet(&workers, &jobs), NOW).assignments;
        for assignment in assignments {
            let n = usize::from(job_index(&assignment.job));
            let before = self.job(n).expect("a planned job exists");
            let number = before.attempt;
            let offered = before.offered(NOW, assignment.worker, assignment.gpus, timestamp(OFFER_TIMEOUT));
            let mut after = offered.expect("a planned job is queued");
            if self.is_mutated(Mutation::AttemptNumberRepeated)
                && number.0 > 0
                && let JobState::Offered { lease, .. } = &mut after.state
            {
                (after.attempt, lease.attempt) = (number, number);
            }
            self.save_job(n, &after);
        }
        self.require_explained();
    }

    fn require_explained(&mut self) {
        let (jobs, workers) = self.protocol.load(&self.world.database);
        for job in waiting(&jobs) {
            let verdict = explain(job, waiting(&jobs), fleet(&workers, &jobs), NOW).verdict;
            let is_explained = !matches!(verdict, ExplainVerdict::Fits { .. } | ExplainVerdict::NotWaiting);
            self.world.violations.require(is_explained, Violation::Unexplained);
        }
    }

    /// `sweep_offers` in `jobs/dispatch.rs`, on the leader.
    pub fn sweep(&mut self) {
        for n in 0..self.world.database.jobs.len() {
            if let Some(job) = self.job(n).filter(|job| job.active_lease().is_some())
                && !self.is_mutated(Mutation::OfferLost)
            {
                self.save_job(n, &job.offer_expired(NOW));
            }
        }
        if !self.is_mutated(Mutation::NotPlanned) {
            self.plan();
        }
    }

    /// `judge_and_apply` in `agents/liveness.rs`. Returns whether there was a verdict.
    pub fn check_health(&mut self, n: usize) -> bool {
        match self.verdict(n) {
            None => return false,
            Some(LivenessVerdict::HeartbeatTimeout) => {
                self.require_listened();
                let worker = self.worker(n).expect("it was judged");
                self.save_worker(n, &worker.went_offline(NOW, OfflineCause::HeartbeatTimeout));
                self.lose_leases(n);
            }
            Some(LivenessVerdict::NotReturned) => {
                if self.held(n).is_empty() {
                    return false;
                }
                self.require_listened();
                self.lose_leases(n);
            }
            Some(LivenessVerdict::Removed) => unreachable!("persistent workers are not removed"),
        }
        if !self.is_mutated(Mutation::NotPlanned) {
            self.plan();
        }
        true
    }

    /// `liveness_verdict` in `workers/liveness.rs`: none if this server is not the leader.
    pub fn verdict(&self, n: usize) -> Option<LivenessVerdict> {
        if self.is_mutated(Mutation::SilenceNotJudged) {
            return None;
        }
        let server = &self.world.servers[self.server];
        let row = self.world.database.workers[n]?;
        let is_fresh = server.contacts >> n & 1 == 1;
        let seen = if is_fresh { Some(NOW) } else { row.seen.map(timestamp) };
        let worker = row.to_worker(n, self.protocol.config.hosts[n]);
        judge_liveness(&worker, seen, self.serving_since()?, duration(TIMEOUT), NOW)
    }

    /// Since when agents could reach this server, and as its leader.
    pub fn serving_since(&self) -> Option<Timestamp> {
        let server = &self.world.servers[self.server];
        if self.is_mutated(Mutation::SilenceWithoutListening) {
            return server.leads_since.map(|_| Timestamp(0));
        }
        let up_since = timestamp(server.up_since?);
        if self.is_mutated(Mutation::JudgedWithoutLeading) {
            return Some(up_since);
        }
        Some(up_since.max(timestamp(server.leads_since?)))
    }

    /// I10, independently of the rules.
    fn require_listened(&mut self) {
        let has_served = |since: Option<i8>| since.is_some_and(|since| -since > TIMEOUT);
        let server = self.me();
        let holds = has_served(server.up_since) && has_served(server.leads_since);
        self.world.violations.require(holds, Violation::JudgedTooEarly);
    }

    /// `lose_leases` in `workers/mod.rs`.
    pub fn lose_leases(&mut self, n: usize) {
        self.withdraw_offers(n);
        let lease = self.lease();
        let loss = AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout);
        for (job, held) in self.protocol.held_indexes(&self.world.database, n) {
            self.save_job(job, &held.lost(NOW, loss.clone(), lease));
        }
    }

    /// `withdraw_offers` in `workers/mod.rs`.
    pub fn withdraw_offers(&mut self, n: usize) {
        for (job, held) in self.protocol.held_indexes(&self.world.database, n) {
            self.save_job(job, &held.offer_withdrawn(NOW));
        }
    }

    /// `stream_closed` in `agents/mod.rs`.
    pub fn close_stream(&mut self, n: usize) {
        if let Some(worker) = self.worker(n)
            && let Some(stream) = worker.stream_id().map(str::to_owned)
        {
            self.save_worker(n, &worker.stream_closed(NOW, &stream));
        }
    }

    /// `drop_dead_streams` in `agents/mod.rs`: of this server at its start, and of servers that have stopped.
    pub fn drop_dead_streams(&mut self, includes_own: bool) {
        for n in 0..self.world.database.workers.len() {
            let Some(row) = self.world.database.workers[n] else { continue };
            let ConnectionRow::Online { server, host, .. } = row.connection else { continue };
            let is_own = usize::from(server) == self.server;
            let is_stale =
                if is_own { includes_own } else { self.world.servers[usize::from(server)].up_since.is_none() };
            if is_stale {
                let worker = self.worker(n).expect("it has a row");
                self.save_worker(n, &worker.stream_closed(NOW, &stream_id(server.into(), host.into())));
            }
        }
    }
}

fn waiting(jobs: &[Job]) -> impl Iterator<Item = &Job> {
    jobs.iter().filter(|job| job.is_queued())
}

fn fleet<'f>(workers: &'f [Worker], jobs: &'f [Job]) -> PlannerFleet<'f> {
    PlannerFleet::new(workers, jobs, ConcurrencyLimits::default())
}

/// Returns whether a job is queued and explained by a reason that time does not remove.
pub fn is_stuck_with_reason(job: &Job, jobs: &[Job], workers: &[Worker]) -> bool {
    let verdict = explain(job, waiting(jobs), fleet(workers, jobs), NOW).verdict;
    matches!(verdict, ExplainVerdict::WorkerUnavailable | ExplainVerdict::Unsatisfiable | ExplainVerdict::NoWorkers)
}
