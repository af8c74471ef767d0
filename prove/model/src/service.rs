//! A server's use cases for agents: they load, call the rules, and store, as `src/server/service/agents`.

use app::domain::ids::AttemptNumber;
use app::domain::job::{AttemptOrder, Job, JobState, PreviousAttempt, StopCause as OrderedStop, Waiting};
use app::domain::reconcile::{AttemptClaim, ClaimVerdict, judge_claim, resolve_unclaimed};
use app::domain::time::Millis;
use app::domain::worker::credential::WorkerSession;
use app::domain::worker::{Worker, WorkerKind};

use crate::config::Mutation;
use crate::messages::{Desired, Offer, Rejection, Request, Response, StopReason};
use crate::protocol::Protocol;
use crate::rows::{JobRow, Key, gpu_bits, job_id, worker_id};
use crate::ticks::{NOW, TIMEOUT, duration};
use crate::violations::Violation;
use crate::workers::{CredentialRow, Session, WorkerRow, capability, session_digest, stream_id, token_digest};
use crate::world::{Database, Server, World};

/// A server that processes something.
pub struct Service<'w> {
    pub protocol: &'w Protocol,
    pub world: &'w mut World,
    pub server: usize,
}

impl Service<'_> {
    pub fn is_mutated(&self, mutation: Mutation) -> bool {
        self.protocol.mutation == Some(mutation)
    }

    pub fn me(&mut self) -> &mut Server {
        &mut self.world.servers[self.server]
    }

    /// The state that frequent requests read (`read_recent`).
    fn recent(&self) -> &Database {
        self.world.servers[self.server].old_state.as_deref().unwrap_or(&self.world.database)
    }

    pub fn job(&self, n: usize) -> Option<Job> {
        self.protocol.job(&self.world.database, n)
    }

    pub fn worker(&self, n: usize) -> Option<Worker> {
        self.protocol.worker(&self.world.database, n)
    }

    pub fn held(&self, worker: usize) -> Vec<Job> {
        self.protocol.held(&self.world.database, worker)
    }

    pub fn save_job(&mut self, n: usize, job: &Job) {
        self.world.database.jobs[n] = Some(JobRow::from_job(job));
    }

    pub fn save_worker(&mut self, n: usize, worker: &Worker) {
        let row = self.world.database.workers[n].as_mut().expect("it exists");
        *row = row.with_worker(worker);
    }

    /// Records that an agent has sent an authenticated request.
    pub fn record_contact(&mut self, worker: usize) {
        self.me().contacts |= 1 << worker;
    }

    /// The length of a lease (`worker_lease` in `service/policy`).
    pub fn lease(&self) -> Millis {
        duration(if self.is_mutated(Mutation::NoFencingDelay) { 0 } else { TIMEOUT })
    }

    /// Processes a request.
    pub fn process(&mut self, host: usize, request: &Request) -> Response {
        let worker = self.protocol.worker_of(host);
        match request {
            Request::Register { token, claims } => self.register(worker, host, *token, claims).map(Some),
            Request::Heartbeat { session, claims } => self.heartbeat(worker, *session, claims).map(Some),
            Request::Report { key, report } | Request::ReportMissing { key, report } => {
                self.report(worker, *key, *report).map(|()| None)
            }
            Request::Progress { key } => self.progress(worker, *key).map(|()| None),
        }
    }

    /// `register_in` in `agents/mod.rs`.
    fn register(&mut self, n: usize, host: usize, token: u8, claims: &[Key]) -> Result<Desired, Rejection> {
        let row = self.world.database.workers[n].ok_or(Rejection::Unauthorized)?;
        let digest = token_digest(token);
        let credential = row.credential.to_credential();
        if !self.is_mutated(Mutation::OldTokenAccepted) {
            credential.verify(&digest, NOW).map_err(|_| Rejection::Unauthorized)?;
        }
        self.require_valid(n, token, false);
        let shape = self.protocol.config.hosts[host];
        let is_alive = self.verdict(n).is_none();
        let before = row.to_worker(n, shape);
        let reported = capability(n, host, shape);
        before.check_registration(&reported, is_alive, self.held(n).len()).map_err(|_| Rejection::Conflict)?;
        let mut after = before.clone().registered(NOW, reported.clone(), WorkerKind::Persistent);
        if self.is_mutated(Mutation::DrainEndedByRegistration) {
            after.drain = None;
        }
        let session =
            WorkerSession { digest: session_digest(Session::Newest).to_owned(), token_digest: digest.clone() };
        let credential = CredentialRow::from_credential(&credential.activated(&digest).with_session(Some(session)));
        self.end_earlier_session(n);
        self.world.database.workers[n] = Some(WorkerRow { credential, ..row.with_worker(&after) });
        let stop = self.accept_claims(n, &after, claims);
        let is_claimed = |job: &Job| claims.iter().any(|key| claim(*key).is_newest_of(job));
        for (job, held) in self.protocol.held_indexes(&self.world.database, n) {
            if !is_claimed(&held) {
                self.save_job(job, &resolve_unclaimed(NOW, &after, held, self.lease()));
            }
        }
        let is_other = before.capability().is_some_and(|former| former.is_other_installation(&reported));
        if is_other && !self.is_mutated(Mutation::AttemptsNotAbandoned) {
            self.abandon_attempts(n, is_claimed);
        }
        self.plan();
        self.record_contact(n);
        let mut desired = self.desired(&self.world.database, n);
        desired.stop.extend(stop);
        Ok(desired)
    }

    /// `abandon_attempts` in `agents/claims.rs`.
    fn abandon_attempts(&mut self, worker: usize, is_claimed: impl Fn(&Job) -> bool) {
        for (n, held) in self.protocol.held_indexes(&self.world.database, worker) {
            if !is_claimed(&held) {
                self.save_job(n, &held.offer_withdrawn(NOW));
            }
        }
        let id = worker_id(worker);
        let is_of_worker = |job: &Job| job.last_lease().is_some_and(|lease| lease.worker == id);
        for n in 0..self.world.database.jobs.len() {
            if let Some(job) = self.job(n).filter(|job| job.is_queued() && is_of_worker(job)) {
                self.save_job(n, &job.attempt_abandoned());
            }
        }
    }

    /// All agents and requests with a session of this worker have a replaced one from now on.
    fn end_earlier_session(&mut self, worker: usize) {
        let (protocol, world) = (self.protocol, &mut *self.world);
        for (n, host) in world.hosts.iter_mut().enumerate().filter(|(n, _)| protocol.worker_of(*n) == worker) {
            if let Some(session) = host.agent.as_mut().and_then(|agent| agent.session.as_mut()) {
                *session = Session::Replaced;
            }
            let flights = world.flights.iter_mut().filter(|flight| usize::from(flight.host) == n);
            flights.for_each(|flight| {
                if let Request::Heartbeat { session, .. } = &mut flight.request {
                    *session = Session::Replaced;
                }
            });
        }
        world.flights.sort();
    }

    /// `accept_claims` in `agents/claims.rs`.
    fn accept_claims(&mut self, n: usize, worker: &Worker, claims: &[Key]) -> Vec<(Key, StopReason)> {
        let mut stop = Vec::new();
        for &key in claims {
            let job = usize::from(key.0);
            let before = self.job(job);
            match self.judge(n, worker, key, before.as_ref()) {
                ClaimVerdict::Keep(after) => self.save_job(job, &after),
                ClaimVerdict::Stop => {
                    if let Some(before) = &before
                        && before.is_newest_attempt(&worker.id, AttemptNumber(key.1.into()))
                    {
                        self.renew_fencing_delay(job, before);
                    }
                    stop.push((key, StopReason::Superseded));
                }
            }
        }
        stop
    }

    fn judge(&self, n: usize, worker: &Worker, key: Key, job: Option<&Job>) -> ClaimVerdict {
        let held = if self.is_mutated(Mutation::RecoveredWithoutResources) { Vec::new() } else { self.held(n) };
        let job = job.cloned();
        let job = if self.is_mutated(Mutation::RecoveredAfterEnd) { job.map(without_loss) } else { job };
        judge_claim(NOW, worker, &held, &claim(key), job.as_ref())
    }

    /// `heartbeat` and `reclaim` in `agents/mod.rs`. One that changes nothing reads recent state only.
    fn heartbeat(&mut self, n: usize, session: Session, claims: &[Key]) -> Result<Desired, Rejection> {
        let row = self.recent().workers[n].ok_or(Rejection::Conflict)?;
        self.authenticate(&row, session)?;
        self.require_valid(n, row.credential.session.unwrap_or_default(), true);
        self.record_contact(n);
        let cached = self.protocol.worker(self.recent(), n).expect("it exists");
        let mut needs_transaction = cached.check_heartbeat().is_err();
        for &key in claims {
            let before = self.protocol.job(self.recent(), key.0.into());
            let verdict = self.judge(n, &cached, key, before.as_ref());
            needs_transaction |=
                !matches!((verdict, before), (ClaimVerdict::Keep(after), Some(before)) if *after == before);
        }
        if !needs_transaction {
            return Ok(self.desired(self.recent(), n));
        }
        let worker = self.worker(n).ok_or(Rejection::Conflict)?;
        worker.check_heartbeat().map_err(|_| Rejection::Conflict)?;
        let stop = self.accept_claims(n, &worker, claims);
        let mut desired = self.desired(&self.world.database, n);
        desired.stop.extend(stop);
        Ok(desired)
    }

    /// `authenticate_worker` in `workers/tokens.rs`: an ended session must register, with a revoked token it cannot.
    fn authenticate(&self, row: &WorkerRow, session: Session) -> Result<(), Rejection> {
        if session == Session::Replaced {
            return Err(Rejection::Conflict);
        }
        let credential = row.credential.to_credential();
        if self.is_mutated(Mutation::OldTokenAccepted) {
            return Ok(());
        }
        credential.verify_session(session_digest(session), NOW).map(drop).map_err(|_| Rejection::Unauthorized)
    }

    /// I8, independently of the rules. Another server may accept a token for as long as it reads old state.
    pub fn require_valid(&mut self, worker: usize, token: u8, by_recent_state: bool) {
        let is_revoked = self.world.revoked.contains(&(u8::try_from(worker).expect("few"), token));
        let may_be_old = by_recent_state && self.world.servers[self.server].old_state.is_some();
        self.world.violations.require(!is_revoked || may_be_old, Violation::RevokedAccepted);
    }

    /// `load_desired` in `agents/desired.rs`.
    fn desired(&self, database: &Database, n: usize) -> Desired {
        let Some(worker) = self.protocol.worker(database, n) else { return Desired::default() };
        let mut desired = Desired { drain: worker.drain.is_some(), ..Desired::default() };
        for (job, held) in self.protocol.held_indexes(database, n) {
            let Some((lease, order)) = held.order(NOW, worker.should_evict(NOW), false) else { continue };
            let key = (u8::try_from(job).expect("few jobs"), u8::try_from(lease.attempt.0).expect("few attempts"));
            match order {
                AttemptOrder::Accept => {
                    let gpus = gpu_bits(&lease.gpus);
                    desired.offers.push(Offer { key, gpus, exclusive: held.spec.exclusive });
                }
                AttemptOrder::Run => desired.run.push(key),
                AttemptOrder::Stop(OrderedStop::Drained | OrderedStop::Preempted) => desired.stop.push((key, StopReason::Drained)),
                AttemptOrder::Stop(OrderedStop::Cancelled | OrderedStop::RuntimeExceeded) => {
                    desired.stop.push((key, StopReason::Cancelled));
                }
            }
        }
        if self.is_mutated(Mutation::OfferLost) {
            desired.offers.clear();
        }
        desired
    }

    /// `stream_opened` in `agents/mod.rs`.
    pub fn open_stream(&mut self, n: usize, host: usize, session: Session) -> Result<(), Rejection> {
        let row = self.recent().workers[n].ok_or(Rejection::Conflict)?;
        self.authenticate(&row, session)?;
        self.require_valid(n, row.credential.session.unwrap_or_default(), true);
        self.record_contact(n);
        let worker = self.worker(n).ok_or(Rejection::Conflict)?;
        let stream = stream_id(self.server, host);
        let after = worker.stream_opened(NOW, &stream).map_err(|_| Rejection::Conflict)?;
        self.save_worker(n, &after);
        self.plan();
        Ok(())
    }

    /// `desired_for_stream` in `agents/mod.rs`: none if the stream must end.
    pub fn desired_for_stream(&mut self, n: usize, host: usize, session: Session) -> Option<Desired> {
        let recent = self.recent().workers[n]?;
        let accepts = |row: &WorkerRow| self.authenticate(row, session).is_ok();
        let is_valid = accepts(&recent) || self.world.database.workers[n].as_ref().is_some_and(accepts);
        let stream = stream_id(self.server, host);
        let worker = self.protocol.worker(self.recent(), n)?;
        if !is_valid || worker.stream_id() != Some(&stream) {
            return None;
        }
        self.require_valid(n, recent.credential.session.unwrap_or_default(), true);
        Some(self.desired(self.recent(), n))
    }
}

fn claim(key: Key) -> AttemptClaim {
    AttemptClaim { job: job_id(key.0.into()), attempt: Some(AttemptNumber(key.1.into())) }
}

/// Forgets how the previous attempt of a job was lost.
fn without_loss(mut job: Job) -> Job {
    if let JobState::Queued(Waiting { previous: Some(PreviousAttempt { loss, .. }), .. }) = &mut job.state {
        *loss = None;
    }
    job
}
