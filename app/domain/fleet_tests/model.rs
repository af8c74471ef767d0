//! The reference model: a fleet as plain counters and states.

use super::commands::{ClaimedAttempts, FleetCommand, HostSpec, NewestAttempt, Reporter};
pub(super) use super::job::{ModelJob, ModelJobState};
use super::server::{HEARTBEAT_TIMEOUT, OFFER_TIMEOUT};
use crate::domain::fixtures::{NOW, gpus};
use crate::domain::gpu::Gpu;
use crate::domain::ids::AttemptNumber;
use crate::domain::job::AttemptReport;
use crate::domain::plan::ConcurrencyLimits;
use crate::domain::time::{Millis, Timestamp};
use crate::domain::worker::WorkerKind;

/// The deadline of a drain without one.
pub(super) const NEVER: Timestamp = Timestamp(i64::MAX);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelConnection {
    NeverConnected,
    Connecting,
    /// Its stream ended.
    Lost,
    /// Connected by the stream with this number.
    Listening(u8),
    Offline,
}

#[derive(Debug, Clone)]
pub(super) struct ModelWorker {
    pub host: HostSpec,
    pub gpus: Vec<Gpu>,
    pub rack: Option<&'static str>,
    pub connection: ModelConnection,
    /// Set by the first registration.
    pub kind: Option<WorkerKind>,
    /// The deadline of its drain, which may be [`NEVER`].
    pub drain: Option<Timestamp>,
    pub retired: bool,
    pub removed: bool,
    /// The job that its agent runs without a lease.
    pub unassigned_run: Option<usize>,
    /// Which of two hosts uses its token.
    elsewhere: bool,
    last_contact: Timestamp,
}

impl ModelWorker {
    fn new((number, host): (u16, &HostSpec)) -> Self {
        Self {
            host: host.clone(),
            gpus: gpus(number, &host.gpus),
            rack: None,
            connection: ModelConnection::NeverConnected,
            kind: None,
            drain: None,
            retired: false,
            removed: false,
            unassigned_run: None,
            elsewhere: false,
            last_contact: NOW,
        }
    }

    pub fn is_connected(&self) -> bool {
        matches!(self.connection, ModelConnection::Connecting | ModelConnection::Lost | ModelConnection::Listening(_))
    }

    /// Ends a stream, or the current one. The end of an older one changes nothing.
    fn stream_closed(&mut self, stream: Option<u8>, now: Timestamp) {
        if let ModelConnection::Listening(newest) = self.connection
            && stream.is_none_or(|stream| stream == newest)
        {
            self.connection = ModelConnection::Lost;
            // An older agent may have been silent for minutes while its stream was open.
            if self.host.older {
                self.last_contact = now;
            }
        }
    }

    fn is_silent(&self, serving_since: Timestamp, now: Timestamp) -> bool {
        let has_open_stream = self.host.older && matches!(self.connection, ModelConnection::Listening(_));
        !has_open_stream && now - self.last_contact.max(serving_since) > HEARTBEAT_TIMEOUT
    }
}

pub(super) struct FleetModel {
    pub now: Timestamp,
    pub workers: Vec<ModelWorker>,
    pub jobs: Vec<ModelJob>,
    pub limits: ConcurrencyLimits,
    serving_since: Timestamp,
}

impl FleetModel {
    pub fn new(hosts: &[HostSpec], limits: ConcurrencyLimits) -> Self {
        let workers = (0..).zip(hosts).map(ModelWorker::new).collect();
        Self { now: NOW, workers, jobs: Vec::new(), limits, serving_since: NOW }
    }

    pub fn newest(&self) -> Vec<NewestAttempt> {
        self.jobs.iter().map(ModelJob::newest).collect()
    }

    pub fn held_by(&self, worker: usize) -> impl Iterator<Item = &ModelJob> {
        self.jobs.iter().filter(move |job| job.holder() == Some(worker))
    }

    pub fn offer(&mut self, job: usize, worker: usize, gpus: Vec<String>) {
        let job = &mut self.jobs[job];
        job.offers.push((worker, gpus));
        (job.end_reported, job.abandoned) = (false, false);
        job.state = ModelJobState::Offered { until: self.now + OFFER_TIMEOUT };
    }

    /// Applies a command; none if it is rejected.
    pub fn apply(&mut self, command: &FleetCommand) -> Option<()> {
        let now = self.now;
        match command {
            FleetCommand::Submit(request) => self.jobs.push(ModelJob::new(request.clone(), request.priority, now)),
            FleetCommand::Retry(job) => {
                let ended = self.jobs.get(*job).filter(|job| job.has_ended())?;
                self.jobs.push(ModelJob {
                    hold_until: ended.hold_until,
                    renewed_at: ended.renewed_at,
                    ..ModelJob::new(ended.request.clone(), ended.priority, now)
                });
            }
            FleetCommand::ChangeJob(job, change) => self.jobs.get_mut(*job)?.change(*change)?,
            FleetCommand::Drain(worker, seconds) => {
                self.existing_worker(*worker)?.drain =
                    Some(seconds.map_or(NEVER, |seconds| now + Millis::from_secs(seconds)));
                self.withdraw_offers(*worker);
            }
            FleetCommand::Resume(worker) => self.existing_worker(*worker)?.drain = None,
            FleetCommand::SetRack(worker, rack) => self.existing_worker(*worker)?.rack = Some(rack),
            FleetCommand::Delete(worker) => {
                let is_run = |job: &ModelJob| {
                    job.holder() == Some(*worker) && !matches!(job.state, ModelJobState::Offered { .. })
                };
                let runs = self.jobs.iter().any(is_run);
                let is_deletable = |worker_state: &ModelWorker| {
                    !worker_state.is_connected() || worker_state.connection == ModelConnection::Lost && !runs
                };
                self.existing_worker(*worker).filter(|worker_state| is_deletable(worker_state))?.removed = true;
                self.lose_all(*worker);
            }
            FleetCommand::Register { worker, elsewhere, claims } => self.register(*worker, *elsewhere, claims)?,
            FleetCommand::Heartbeat { worker, claims } => self.heartbeat(*worker, claims)?,
            FleetCommand::OlderAgentClaim(worker, runs) => {
                self.record_contact(*worker).filter(|worker| worker.is_connected())?;
                self.claim_heartbeat(*worker, *runs);
            }
            FleetCommand::GpusReported(worker, unavailable) => self.gpus_reported(*worker, *unavailable)?,
            FleetCommand::StreamOpened(worker, stream) => {
                self.record_contact(*worker).filter(|worker| worker.is_connected())?.connection =
                    ModelConnection::Listening(*stream);
            }
            FleetCommand::StreamEnded(worker, stream) => {
                self.existing_worker(*worker)?.stream_closed(Some(*stream), now);
            }
            FleetCommand::Disconnect(worker) => {
                self.record_contact(*worker)?;
                self.existing_worker(*worker).filter(|worker| worker.is_connected()).map(ModelWorker::go_offline);
                self.withdraw_offers(*worker);
            }
            FleetCommand::Report { job, by, attempt, report } => {
                let newest = self.jobs.get(*job)?.newest();
                let worker = match by {
                    Reporter::Holder => newest?.0,
                    Reporter::Worker(worker) => self.record_contact(*worker).map(|_| *worker)?,
                };
                let reported = self.report(*job, worker, attempt.resolve(newest), report);
                self.apply_older_agent_claim(
                    worker,
                    matches!(report, AttemptReport::Starting | AttemptReport::Running).then_some(*job),
                );
                reported?;
            }
            FleetCommand::TimePassed(seconds) => self.now = now + Millis::from_secs(*seconds),
            FleetCommand::SweepOffers => {
                let is_expired =
                    |job: &&mut ModelJob| matches!(job.state, ModelJobState::Offered { until } if until <= now);
                self.jobs.iter_mut().filter(is_expired).for_each(ModelJob::withdraw_offer);
            }
            FleetCommand::CheckHealth(worker) => self.check_health(*worker),
            FleetCommand::RestartServer => {
                self.serving_since = now;
                self.workers.iter_mut().for_each(|worker| worker.stream_closed(None, now));
            }
        }
        Some(())
    }

    fn existing_worker(&mut self, worker: usize) -> Option<&mut ModelWorker> {
        self.workers.get_mut(worker).filter(|worker| !worker.removed)
    }

    pub fn record_contact(&mut self, worker: usize) -> Option<&mut ModelWorker> {
        let now = self.now;
        self.existing_worker(worker)?.last_contact = now;
        for job in self.jobs.iter_mut().filter(|job| job.holder() == Some(worker) && job.renewed_at.is_some()) {
            job.renewed_at = Some(now);
        }
        self.existing_worker(worker)
    }

    fn withdraw_offers(&mut self, worker: usize) {
        let offered =
            |job: &&mut ModelJob| job.holder() == Some(worker) && matches!(job.state, ModelJobState::Offered { .. });
        self.jobs.iter_mut().filter(offered).for_each(ModelJob::withdraw_offer);
    }

    fn lose_all(&mut self, worker: usize) {
        self.withdraw_offers(worker);
        let now = self.now;
        self.jobs.iter_mut().filter(|job| job.holder() == Some(worker)).for_each(|job| job.lose_without_report(now));
    }

    fn register(&mut self, worker: usize, elsewhere: bool, claims: &ClaimedAttempts) -> Option<()> {
        let (serving_since, now) = (self.serving_since, self.now);
        let has_no_jobs = self.held_by(worker).next().is_none();
        let state = self.existing_worker(worker)?;
        let token_in_use = state.is_connected() && state.elsewhere != elsewhere && !state.is_silent(serving_since, now);
        if (state.retired && has_no_jobs) || token_in_use {
            return None;
        }
        let moved = state.connection != ModelConnection::NeverConnected && state.elsewhere != elsewhere;
        state.kind.get_or_insert(state.host.kind);
        (state.connection, state.elsewhere, state.last_contact, state.unassigned_run) =
            (ModelConnection::Connecting, elsewhere, now, None);
        state.mark_unavailable(0);
        let claims = claims.resolve(worker, &self.newest());
        self.apply_claims(worker, claims.clone());
        for (n, job) in self.jobs.iter_mut().enumerate() {
            let Some((last, newest)) = job.newest().filter(|(last, _)| *last == worker) else { continue };
            let is_claim = |(job, attempt): &(usize, Option<AttemptNumber>)| {
                *job == n && attempt.is_none_or(|attempt| attempt == newest)
            };
            if claims.iter().any(is_claim) || job.has_ended() {
                continue;
            }
            let is_offered = matches!(job.state, ModelJobState::Offered { .. });
            if job.holder() == Some(last) && !is_offered {
                job.lose_without_report(now);
            }
            if moved && is_offered {
                job.withdraw_offer();
            }
            job.abandoned = moved && job.waits();
        }
        Some(())
    }

    fn heartbeat(&mut self, worker: usize, claims: &ClaimedAttempts) -> Option<()> {
        self.record_contact(worker).filter(|worker| worker.is_connected())?;
        let has_attempt = |(_, attempt): &(usize, Option<AttemptNumber>)| attempt.is_some();
        let claims = claims.resolve(worker, &self.newest()).into_iter().filter(has_attempt).collect();
        self.apply_claims(worker, claims);
        Some(())
    }

    /// A valid claim continues, unless the job is being cancelled. An agent that names no attempt may only have
    /// received the offer.
    fn apply_claims(&mut self, worker: usize, claims: Vec<(usize, Option<AttemptNumber>)>) {
        for (job, attempt) in claims {
            if self.jobs.get(job).is_some_and(|job| !job.has_ended()) {
                let accepts_offer = attempt.is_none() && matches!(self.jobs[job].state, ModelJobState::Offered { .. });
                let report = if accepts_offer { AttemptReport::Starting } else { AttemptReport::Running };
                let _ = self.report(job, worker, attempt, &report);
            }
        }
    }

    /// Only the newest attempt counts (I1).
    fn report(
        &mut self,
        job: usize,
        worker: usize,
        attempt: Option<AttemptNumber>,
        report: &AttemptReport,
    ) -> Option<()> {
        if self.jobs[job].is_late(report) {
            let newest = self.jobs[job].newest();
            return newest
                .is_some_and(|(to, number)| to == worker && attempt.is_none_or(|claimed| claimed == number))
                .then_some(());
        }
        let is_recovery = self.jobs[job].waits() && matches!(report, AttemptReport::Starting | AttemptReport::Running);
        if is_recovery && !self.has_resources(job, worker) {
            return None;
        }
        let (now, state) = (self.now, &mut self.workers[worker]);
        let is_evicted = state.drain.is_some_and(|deadline| deadline <= now) && !state.removed;
        let returned = matches!(report, AttemptReport::Cancelled | AttemptReport::Requeue { .. });
        let report = if is_evicted && returned && !self.jobs[job].exceeded_runtime(now) {
            &AttemptReport::Evicted
        } else {
            report
        };
        let job = &mut self.jobs[job];
        job.newest().filter(|(to, number)| *to == worker && attempt.is_none_or(|claimed| claimed == *number))?;
        let ended_before = job.has_ended();
        if !job.apply_report(report, now) {
            return None;
        }
        let continues = matches!(report, AttemptReport::Starting | AttemptReport::Running);
        job.renewed_at = continues.then_some(now);
        job.hold_until = job.hold_until.filter(|_| ended_before);
        let ended = job.has_ended() && !ended_before;
        state.retired |= ended && state.kind == Some(WorkerKind::Ephemeral);
        Some(())
    }

    /// Whether the resources of a lost attempt exist and are free (I3).
    fn has_resources(&self, job: usize, worker: usize) -> bool {
        let (state, last) = (&self.workers[worker], self.jobs[job].newest_offer());
        let mut used_gpus = self.held_by(worker).filter_map(|other| other.offers.last()).flat_map(|(_, gpus)| gpus);
        let has_slot = self.held_by(worker).count() < state.host.max_jobs as usize;
        has_slot && !state.removed && last.is_some_and(|(_, gpus)| used_gpus.all(|gpu| !gpus.contains(gpu)))
    }

    fn check_health(&mut self, worker: usize) {
        let (serving_since, now) = (self.serving_since, self.now);
        let Some(state) = self.existing_worker(worker) else { return };
        let is_removable = state.connection == ModelConnection::Offline
            && state.kind == Some(WorkerKind::Ephemeral)
            && now - serving_since > HEARTBEAT_TIMEOUT
            && now - state.last_contact >= Millis::from_secs(3_600);
        let is_abandoned = state.connection == ModelConnection::Offline && state.is_silent(serving_since, now);
        if state.is_connected() && state.is_silent(serving_since, now) {
            state.go_offline();
            state.last_contact = now;
            self.lose_all(worker);
        } else if is_removable {
            state.removed = true;
            self.lose_all(worker);
        } else if is_abandoned {
            self.lose_all(worker);
        }
    }
}
