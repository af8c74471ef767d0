//! The real rules, called like in `src/server/service`; two lists replace the database.

use super::commands::{ClaimedAttempts, FleetCommand, HostSpec, JobRequest, NewestAttempt, Reporter};
use super::repeated_planning::LastRound;
use crate::domain::capability::Capability;
use crate::domain::fixtures::{self, NOW, gpus, job_id, label, worker_id};
use crate::domain::ids::{AttemptNumber, WorkerId};
use crate::domain::job::{AttemptLoss, AttemptReport, Demand, Job, JobSpec};
use crate::domain::labels::Labels;
use crate::domain::liveness::{self, LivenessVerdict};
use crate::domain::plan::{self, AssignmentPlan, ConcurrencyLimits, JobQueue, PlannerFleet};
use crate::domain::priority::MAX_PRIORITY;
use crate::domain::reconcile::{self, AttemptClaim, resolve_unclaimed};
use crate::domain::time::{Millis, Timestamp};
use crate::domain::unassigned_run::OlderAgentClaim;
use crate::domain::worker::{OfflineCause, Worker, WorkerEdit};

/// As in the server's policy.
pub(super) const HEARTBEAT_TIMEOUT: Millis = Millis::from_secs(120);
/// As in the server's policy.
pub(super) const OFFER_TIMEOUT: Millis = Millis::from_secs(30);

pub(super) struct SimulatedServer {
    pub now: Timestamp,
    /// None for a removed worker.
    pub workers: Vec<Option<Worker>>,
    pub jobs: Vec<Job>,
    ids: Vec<WorkerId>,
    hosts: Vec<HostSpec>,
    last_contact: Vec<Option<Timestamp>>,
    serving_since: Timestamp,
    limits: ConcurrencyLimits,
    pub last_round: LastRound,
}

/// The result of a command: whether planning follows. None if it was rejected.
type CommandOutcome = Option<PlanningTrigger>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanningTrigger {
    Follows,
    No,
}

fn number(index: usize) -> u16 {
    u16::try_from(index).expect("few")
}

impl SimulatedServer {
    pub fn new(hosts: &[HostSpec], limits: ConcurrencyLimits) -> Self {
        let new_worker = |(n, host): (u16, &HostSpec)| Some(Worker { local: host.local, ..fixtures::unseen_worker(n) });
        Self {
            now: NOW,
            workers: (0..).zip(hosts).map(new_worker).collect(),
            jobs: Vec::new(),
            ids: (0..).map(worker_id).take(hosts.len()).collect(),
            hosts: hosts.to_vec(),
            last_contact: vec![None; hosts.len()],
            serving_since: NOW,
            limits,
            last_round: LastRound::default(),
        }
    }

    /// Returns the index of a worker.
    pub fn worker_index(&self, id: &WorkerId) -> usize {
        self.ids.iter().position(|other| other == id).expect("a known ID")
    }

    pub fn newest(&self) -> Vec<NewestAttempt> {
        let newest = |job: &Job| job.last_lease().map(|lease| (self.worker_index(&lease.worker), lease.attempt));
        self.jobs.iter().map(newest).collect()
    }

    pub fn fleet(&self) -> PlannerFleet<'_> {
        PlannerFleet::new(self.workers.iter().flatten(), &self.jobs, self.limits)
    }

    /// Returns the pending jobs.
    pub fn waiting(&self) -> Vec<&Job> {
        self.jobs.iter().filter(|job| job.is_queued()).collect()
    }

    pub fn plan(&self) -> AssignmentPlan<'_> {
        plan::plan(JobQueue::new(self.waiting()), self.fleet(), self.now)
    }

    pub fn offer(&mut self, job: usize, worker: usize, gpus: Vec<String>) {
        let until = self.now + OFFER_TIMEOUT;
        let offered = self.jobs[job].clone().offered(self.now, self.ids[worker].clone(), gpus, until);
        self.jobs[job] = offered.expect("planned jobs are queued");
    }

    pub fn apply(&mut self, command: &FleetCommand) -> CommandOutcome {
        match command {
            FleetCommand::Submit(request) => Some(self.add(submitted(request, number(self.jobs.len()), self.now))),
            FleetCommand::Retry(job) => self.retry(*job),
            FleetCommand::ChangeJob(job, change) => self.change_job(*job, |job, now| change.apply(job, now)),
            FleetCommand::Drain(worker, seconds) => self.drain(*worker, *seconds),
            FleetCommand::Resume(worker) => self.change_worker(*worker, |worker, _| Some(worker.resumed())),
            FleetCommand::SetRack(worker, rack) => {
                let edit = WorkerEdit { labels: Some(label("rack", rack)), ..WorkerEdit::default() };
                self.change_worker(*worker, |worker, _| Some(worker.edited(edit)))
            }
            FleetCommand::Delete(worker) => self.delete(*worker),
            FleetCommand::Register { worker, elsewhere, claims } => self.register(*worker, *elsewhere, claims),
            FleetCommand::Heartbeat { worker, claims } => self.heartbeat(*worker, claims),
            FleetCommand::OlderAgentClaim(worker, runs) => {
                self.record_contact(*worker)?;
                self.workers[*worker].as_ref()?.check_heartbeat().ok()?;
                let claim = runs.map_or(OlderAgentClaim::Idle, |job| OlderAgentClaim::Running(job_id(number(job))));
                self.claim_heartbeat(*worker, &claim)
            }
            FleetCommand::GpusReported(worker, unavailable) => self.gpus_reported(*worker, *unavailable),
            FleetCommand::StreamOpened(worker, stream) => self.listen(*worker, *stream),
            FleetCommand::StreamEnded(worker, stream) => self.stream_ended(*worker, *stream),
            FleetCommand::Disconnect(worker) => self.disconnect(*worker),
            FleetCommand::Report { job, by, attempt, report } => {
                let newest = self.newest().get(*job).copied()?;
                let worker = self.reporter(*by, newest)?;
                let reported = self.report(*job, worker, attempt.resolve(newest), report.clone());
                let claim_planning =
                    self.apply_older_agent_claim(worker, &OlderAgentClaim::from_report(&job_id(number(*job)), report));
                reported
                    .map(|planning| if claim_planning == PlanningTrigger::Follows { claim_planning } else { planning })
            }
            FleetCommand::TimePassed(seconds) => Some(self.advance_time(*seconds)),
            FleetCommand::SweepOffers => Some(self.sweep_offers()),
            FleetCommand::CheckHealth(worker) => self.check_health(*worker),
            FleetCommand::RestartServer => Some(self.restart()),
        }
    }

    fn add(&mut self, job: Job) -> PlanningTrigger {
        self.jobs.push(job);
        PlanningTrigger::Follows
    }

    fn change_job(&mut self, job: usize, change: impl FnOnce(Job, Timestamp) -> Option<Job>) -> CommandOutcome {
        let job = self.jobs.get_mut(job)?;
        *job = change(job.clone(), self.now)?;
        Some(PlanningTrigger::Follows)
    }

    fn change_leased(&mut self, worker: usize, change: impl Fn(Job, Timestamp) -> Job) {
        for job in self.jobs.iter_mut().filter(|job| is_leased_to(&self.ids[worker], job)) {
            *job = change(job.clone(), self.now);
        }
    }

    fn change_worker(
        &mut self,
        worker: usize,
        change: impl FnOnce(Worker, Timestamp) -> Option<Worker>,
    ) -> CommandOutcome {
        let worker = self.workers[worker].as_mut()?;
        *worker = change(worker.clone(), self.now)?;
        Some(PlanningTrigger::Follows)
    }

    /// Records that a worker's token was accepted.
    pub fn record_contact(&mut self, worker: usize) -> Option<()> {
        self.workers[worker].as_ref()?;
        self.last_contact[worker] = Some(self.now);
        Some(())
    }

    fn retry(&mut self, job: usize) -> CommandOutcome {
        let (ended, id) = (self.jobs.get(job)?, job_id(number(self.jobs.len())));
        let retried = ended.retried(id, self.now, ended.submitted_by.clone(), MAX_PRIORITY).ok()?;
        Some(self.add(retried))
    }

    fn drain(&mut self, worker: usize, seconds: Option<i64>) -> CommandOutcome {
        let deadline = seconds.map(|seconds| self.now + Millis::from_secs(seconds));
        let planning = self.change_worker(worker, |worker, now| Some(worker.drained(now, None, deadline)))?;
        self.change_leased(worker, Job::offer_withdrawn);
        Some(planning)
    }

    fn delete(&mut self, worker: usize) -> CommandOutcome {
        let (stored, last_contact) = (self.workers[worker].as_ref()?, self.last_contact[worker]);
        let offline_at = liveness::offline_at(stored, last_contact, self.serving_since, HEARTBEAT_TIMEOUT);
        stored.check_deletion(&self.held(worker), offline_at).ok()?;
        Some(self.remove(worker))
    }

    fn listen(&mut self, worker: usize, stream: u8) -> CommandOutcome {
        self.record_contact(worker)?;
        self.change_worker(worker, |worker, now| worker.stream_opened(now, &stream.to_string()).ok())
    }

    fn stream_ended(&mut self, worker: usize, stream: u8) -> CommandOutcome {
        self.change_worker(worker, |worker, now| Some(worker.stream_closed(now, &stream.to_string())))?;
        Some(PlanningTrigger::No)
    }

    fn disconnect(&mut self, worker: usize) -> CommandOutcome {
        self.record_contact(worker)?;
        let planning =
            self.change_worker(worker, |worker, now| Some(worker.went_offline(now, OfflineCause::Disconnected)))?;
        self.change_leased(worker, Job::offer_withdrawn);
        Some(planning)
    }

    /// Returns the worker whose token authenticates a report.
    fn reporter(&mut self, by: Reporter, newest: NewestAttempt) -> Option<usize> {
        match by {
            Reporter::Holder => newest.map(|(worker, _)| worker),
            Reporter::Worker(worker) => self.record_contact(worker).map(|()| worker),
        }
    }

    pub fn held(&self, worker: usize) -> Vec<Job> {
        self.jobs.iter().filter(|job| is_leased_to(&self.ids[worker], job)).cloned().collect()
    }

    fn lose_leases(&mut self, worker: usize) {
        self.change_leased(worker, Job::offer_withdrawn);
        let cause = self.workers[worker].as_ref().and_then(Worker::offline_cause);
        let loss = AttemptLoss::WorkerOffline(cause.unwrap_or(OfflineCause::HeartbeatTimeout));
        self.change_leased(worker, |job, now| job.lost(now, loss.clone(), HEARTBEAT_TIMEOUT));
    }

    fn remove(&mut self, worker: usize) -> PlanningTrigger {
        self.lose_leases(worker);
        self.workers[worker] = None;
        PlanningTrigger::No
    }

    fn verdict(&self, worker: usize) -> Option<LivenessVerdict> {
        let (stored, last_contact) = (self.workers[worker].as_ref()?, self.last_contact[worker]);
        liveness::judge_liveness(stored, last_contact, self.serving_since, HEARTBEAT_TIMEOUT, self.now)
    }

    fn register(&mut self, worker: usize, elsewhere: bool, claims: &ClaimedAttempts) -> CommandOutcome {
        let capability = capability(&self.hosts[worker], number(worker), elsewhere);
        let (is_alive, kind) = (self.verdict(worker).is_none(), self.hosts[worker].kind);
        let held_jobs = self.held(worker).len();
        let former = self.workers[worker].as_ref().and_then(Worker::capability).cloned();
        let moved = former.is_some_and(|former| former.is_other_installation(&capability));
        self.change_worker(worker, |worker, now| {
            worker.check_registration(&capability, is_alive, held_jobs).ok()?;
            Some(worker.registered(now, capability, kind))
        })?;
        self.record_contact(worker)?;
        let claims = claims.resolve(worker, &self.newest());
        self.apply_claims(worker, &claims);
        let claims: Vec<AttemptClaim> = claims.iter().map(attempt_claim).collect();
        for job in &mut self.jobs {
            let is_claimed = claims.iter().any(|claim| claim.is_newest_of(job));
            let Some(state) = self.workers[worker].as_ref().filter(|_| !is_claimed) else { continue };
            if is_leased_to(&self.ids[worker], job) {
                *job = resolve_unclaimed(self.now, state, job.clone(), HEARTBEAT_TIMEOUT);
            }
            if moved && job.last_lease().is_some_and(|lease| lease.worker == self.ids[worker]) {
                *job = job.clone().offer_withdrawn(self.now).attempt_abandoned();
            }
        }
        Some(PlanningTrigger::Follows)
    }

    fn heartbeat(&mut self, worker: usize, claims: &ClaimedAttempts) -> CommandOutcome {
        self.record_contact(worker)?;
        self.workers[worker].as_ref()?.check_heartbeat().ok()?;
        let claims: Vec<_> =
            claims.resolve(worker, &self.newest()).into_iter().filter(|(_, attempt)| attempt.is_some()).collect();
        self.apply_claims(worker, &claims);
        Some(PlanningTrigger::No)
    }

    fn apply_claims(&mut self, worker: usize, claims: &[(usize, Option<AttemptNumber>)]) {
        for (job, attempt) in claims {
            let claim = attempt_claim(&(*job, *attempt));
            let (stored, held) = (self.jobs.get(*job), self.held(worker));
            let Some(holder) = &self.workers[worker] else { continue };
            if let reconcile::ClaimVerdict::Keep(after) =
                reconcile::judge_claim(self.now, holder, &held, &claim, stored)
            {
                self.jobs[*job] = *after;
            }
        }
    }

    fn report(
        &mut self,
        job: usize,
        worker: usize,
        attempt: Option<AttemptNumber>,
        report: AttemptReport,
    ) -> CommandOutcome {
        let overdue = self.jobs[job].exceeded_runtime(self.now).is_some();
        let is_evicted = !overdue && self.workers[worker].as_ref().is_some_and(|worker| worker.should_evict(self.now));
        let report = match report {
            AttemptReport::Cancelled | AttemptReport::Requeue { .. } if is_evicted => AttemptReport::Evicted,
            other => other,
        };
        let (before, id) = (self.jobs[job].clone(), self.ids[worker].clone());
        let attempt = attempt.unwrap_or(before.attempt);
        let after = before.clone().reported(self.now, &id, attempt, report).ok()?;
        if reconcile::resources_are_taken(&before, &after, self.workers[worker].as_ref(), &self.held(worker)) {
            return None;
        }
        if after.has_ended() && !before.has_ended() {
            // A removed worker cannot be retired.
            let _ = self.change_worker(worker, |worker, now| Some(worker.job_ended(now)));
        }
        let freed = before.active_lease().is_some() && after.active_lease().is_none();
        self.jobs[job] = after;
        Some(if freed { PlanningTrigger::Follows } else { PlanningTrigger::No })
    }

    fn check_health(&mut self, worker: usize) -> CommandOutcome {
        match self.verdict(worker) {
            None => Some(PlanningTrigger::No),
            Some(LivenessVerdict::HeartbeatTimeout) => {
                self.change_worker(worker, |worker, now| {
                    Some(worker.went_offline(now, OfflineCause::HeartbeatTimeout))
                })?;
                self.lose_leases(worker);
                Some(PlanningTrigger::Follows)
            }
            Some(LivenessVerdict::NotReturned) => {
                self.lose_leases(worker);
                Some(PlanningTrigger::Follows)
            }
            Some(LivenessVerdict::Removed) => Some(self.remove(worker)),
        }
    }

    fn advance_time(&mut self, seconds: i64) -> PlanningTrigger {
        self.now = self.now + Millis::from_secs(seconds);
        PlanningTrigger::No
    }

    fn sweep_offers(&mut self) -> PlanningTrigger {
        for job in &mut self.jobs {
            *job = job.clone().offer_expired(self.now);
        }
        PlanningTrigger::Follows
    }

    fn restart(&mut self) -> PlanningTrigger {
        self.serving_since = self.now;
        for worker in self.workers.iter_mut().flatten() {
            if let Some(stream) = worker.stream_id().map(str::to_owned) {
                *worker = worker.clone().stream_closed(self.now, &stream);
            }
        }
        PlanningTrigger::No
    }
}

fn is_leased_to(id: &WorkerId, job: &Job) -> bool {
    job.active_lease().is_some_and(|lease| lease.worker == *id)
}

fn submitted(request: &JobRequest, number: u16, now: Timestamp) -> Job {
    let demand = Demand {
        labels: request.rack.map_or_else(Labels::default, |rack| label("rack", rack)),
        gpu_count: request.gpus,
        min_vram_gb: request.vram_gb.map(f64::from),
        ..Demand::default()
    };
    let spec = JobSpec {
        target: request.target,
        max_retries: request.max_retries,
        retry_on_failure: request.retry_on_failure,
        max_runtime: request.max_runtime.map(Millis::from_secs),
        exclusive: request.exclusive,
        secrets: None,
        ..fixtures::spec(demand)
    };
    Job { priority: request.priority, ..Job::submitted(job_id(number), spec, now, request.by.to_owned()) }
}

fn attempt_claim((job, attempt): &(usize, Option<AttemptNumber>)) -> AttemptClaim {
    AttemptClaim { job: job_id(number(*job)), attempt: *attempt }
}

fn capability(host: &HostSpec, number: u16, elsewhere: bool) -> Capability {
    Capability {
        gpus: gpus(number, &host.gpus),
        protocol: (!host.older).then_some(1),
        install_id: Some(if elsewhere { "other" } else { "first" }.to_owned()),
        max_jobs: host.max_jobs,
        ..Capability::default()
    }
}
