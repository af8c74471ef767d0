//! The agent's decisions, as `src/worker/state.rs`, and what its attempts do with responses, as `src/worker/attempt`.

use crate::config::Mutation;
use crate::messages::{Desired, Offer, Rejection, Report, Request, Response, StopReason};
use crate::protocol::Protocol;
use crate::rows::Key;
use crate::ticks::{TIMEOUT, Ticks};
use crate::world::{Agent, Exit, Host, Listening, Run, Stage, StopCause};

/// The agent of a host while it handles an input.
pub struct AgentTurn<'h> {
    pub protocol: &'h Protocol,
    pub host: &'h mut Host,
    pub agent: Agent,
    /// Reports on attempts that are not on this host.
    pub missing: Vec<(Key, Report)>,
    pub max_jobs: usize,
}

impl AgentTurn<'_> {
    fn is_mutated(&self, mutation: Mutation) -> bool {
        self.protocol.mutation == Some(mutation)
    }

    /// `can_start`: a GPU is never shared on a host, and a job never runs twice.
    fn can_start(&self, offer: Offer) -> bool {
        let conflicts = |run: &Run| {
            let shares_gpu = run.gpus & offer.gpus != 0 && !self.is_mutated(Mutation::GpuSharedOnHost);
            run.key.0 == offer.key.0 || shares_gpu
        };
        let active: Vec<&Run> = self.host.runs.iter().filter(|run| run.is_active()).collect();
        active.len() < self.max_jobs && !active.into_iter().any(conflicts)
    }

    /// `handle_offer`.
    fn handle_offer(&mut self, offer: Offer) {
        let runs = &self.host.runs;
        let is_known = runs.iter().any(|run| run.key.0 == offer.key.0 && run.key.1 >= offer.key.1);
        if self.agent.is_rejected || self.agent.is_draining || is_known {
            return;
        }
        let older: Vec<Key> =
            runs.iter().filter(|run| run.key.0 == offer.key.0 && run.is_active()).map(|run| run.key).collect();
        for key in older {
            self.order_stop(key, StopCause::Superseded);
        }
        if self.can_start(offer) {
            self.host.runs.push(Run::new(offer.key, offer.gpus, offer.exclusive, Stage::Preparing));
            self.host.runs.sort();
        } else {
            self.queue_offer(offer);
        }
    }

    /// `queue_offer`: the newest one of its job, in the place of the first.
    fn queue_offer(&mut self, offer: Offer) {
        match self.agent.pending.iter_mut().find(|queued| queued.key.0 == offer.key.0) {
            Some(queued) if queued.key.1 <= offer.key.1 => *queued = offer,
            Some(_) => {}
            None => self.agent.pending.push(offer),
        }
    }

    /// `handle_stop`.
    fn handle_stop(&mut self, key: Key, reason: StopReason) {
        self.agent.pending.retain(|offer| offer.key.0 != key.0 || offer.key.1 > key.1);
        let cause = match reason {
            StopReason::Cancelled => StopCause::Cancelled,
            StopReason::Superseded => StopCause::Superseded,
            StopReason::Drained => StopCause::Requeue,
        };
        if self.host.run(key).is_some() {
            self.order_stop(key, cause);
        } else if cause == StopCause::Cancelled && !self.agent.reported_missing.contains(&key) {
            self.report_missing(key, Report::Cancelled);
        }
    }

    fn report_missing(&mut self, key: Key, report: Report) {
        self.agent.reported_missing.push(key);
        self.agent.reported_missing.sort_unstable();
        self.missing.push((key, report));
    }

    /// `order_stop`, and `prepare` in `attempt/prepare.rs`: without a supervisor there is nothing to wait for.
    pub fn order_stop(&mut self, key: Key, cause: StopCause) {
        let Some(run) = self.host.run(key) else { return };
        if run.stop.is_some_and(|earlier| earlier >= cause) {
            return;
        }
        match run.stage {
            Stage::Preparing => (run.stop, run.stage) = (Some(cause), Stage::Exited(Exit::Stopped(cause))),
            Stage::Training | Stage::Orphaned { .. } => run.stop = Some(cause),
            Stage::Exited(_) if cause >= StopCause::Cancelled => run.stop = Some(cause),
            Stage::Exited(_) | Stage::Delivered => {}
        }
        self.deliver_superseded(key);
    }

    /// A superseded attempt reports nothing.
    fn deliver_superseded(&mut self, key: Key) {
        let Some(run) = self.host.run(key) else { return };
        if matches!(run.stage, Stage::Exited(_)) && run.stop == Some(StopCause::Superseded) {
            self.deliver(key);
        }
    }

    /// Likewise for all attempts.
    pub fn deliver_all_superseded(&mut self) {
        for key in self.host.running() {
            self.deliver_superseded(key);
        }
    }

    /// The end of an attempt was reported, or is not to be reported.
    fn deliver(&mut self, key: Key) {
        let Some(run) = self.host.run(key) else { return };
        *run = Run::new(key, 0, false, Stage::Delivered);
        self.host.runs.sort();
    }

    /// `apply_desired`.
    fn apply_desired(&mut self, desired: Desired) {
        self.agent.is_draining = desired.drain;
        for (key, reason) in desired.stop {
            self.handle_stop(key, reason);
        }
        for key in desired.run {
            if self.host.run(key).is_none() && !self.agent.reported_missing.contains(&key) {
                self.report_missing(key, Report::Requeue);
            }
        }
        for offer in desired.offers {
            self.handle_offer(offer);
        }
    }

    /// Events of a stream: what to stop, the offers, and the drain.
    pub fn handle_event(&mut self, desired: Desired) {
        self.apply_desired(Desired { run: Vec::new(), ..desired });
    }

    /// `schedule_pending`: starts pending offers when possible.
    fn schedule_pending(&mut self) {
        for offer in std::mem::take(&mut self.agent.pending) {
            self.handle_offer(offer);
        }
    }

    /// Handles the response to a request that was sent at this time.
    pub fn handle_response(&mut self, request: &Request, sent: Ticks, response: Response) {
        match (request, response) {
            (Request::Register { .. }, Ok(desired)) => {
                self.agent.session = Some(crate::workers::Session::Newest);
                self.agent.listening = Listening::Registered;
                self.agent.lease.get_or_insert(0);
                self.renew_lease(sent);
                self.apply_desired(desired.unwrap_or_default());
            }
            (Request::Heartbeat { .. }, Ok(desired)) => {
                self.renew_lease(sent);
                self.apply_desired(desired.unwrap_or_default());
            }
            (Request::Register { .. } | Request::Heartbeat { .. }, Err(Rejection::Unauthorized)) => {
                self.agent.is_rejected = true;
                (self.agent.session, self.agent.listening) = (None, Listening::Unregistered);
            }
            (Request::Register { .. }, Err(Rejection::Conflict)) | (Request::ReportMissing { .. }, _) => {}
            (Request::Heartbeat { .. }, Err(Rejection::Conflict)) => self.agent.listening = Listening::Unregistered,
            (Request::Report { key, report }, result) => {
                if result.is_ok() {
                    self.renew_lease(sent);
                }
                self.handle_reported(*key, *report, result.is_ok());
            }
            (Request::Progress { .. }, Ok(_)) => self.renew_lease(sent),
            (Request::Progress { key }, Err(_)) => self.order_stop(*key, StopCause::Superseded),
        }
    }

    /// `accept_offer`, `report_running` and `report_end` in `attempt/`. A final report is done whatever the response.
    fn handle_reported(&mut self, key: Key, report: Report, is_accepted: bool) {
        if report.has_stopped() {
            self.deliver(key);
        } else if is_accepted && let Some(run) = self.host.run(key) {
            run.accepted |= report == Report::Starting;
            run.running_answered |= report == Report::Running;
        } else {
            self.order_stop(key, StopCause::Superseded);
        }
    }

    /// `LeaseTimer::renew` in `api/lease.rs`, and `maintain_lease` in `attempt/lease.rs`.
    fn renew_lease(&mut self, sent: Ticks) {
        // Only exclusive attempts have a lease on their host.
        let has_exclusive = self.protocol.config.jobs.iter().any(|job| job.exclusive);
        let Some(lease) = self.agent.lease.as_mut().filter(|_| has_exclusive) else { return };
        *lease = (*lease).max(sent + TIMEOUT);
        for run in &mut self.host.runs {
            if run.exclusive && run.stage == Stage::Training {
                run.lease = Some(*lease);
            }
        }
    }

    /// Puts the agent back, unless it exits.
    pub fn finish(mut self) -> Vec<(Key, Report)> {
        self.schedule_pending();
        let has_exited = self.agent.is_rejected && !self.host.runs.iter().any(Run::is_active);
        if has_exited {
            self.host.late_event = None;
        } else {
            self.host.agent = Some(self.agent);
        }
        self.missing
    }
}

/// The report that an attempt sends next, if any: first that the trainer runs, then its end.
pub fn next_report(run: &Run, mutation: Option<Mutation>) -> Option<Report> {
    let ends_early = mutation == Some(Mutation::ReportedBeforeEnd) && run.stage == Stage::Training;
    match run.stage {
        Stage::Preparing if !run.accepted => Some(Report::Starting),
        Stage::Orphaned { .. } if mutation == Some(Mutation::OrphansNotKilled) => Some(Report::Failed),
        Stage::Preparing | Stage::Orphaned { .. } | Stage::Delivered => None,
        Stage::Training | Stage::Exited(_) if run.had_supervisor && !run.running_answered => Some(Report::Running),
        Stage::Training => (ends_early && run.stop.is_some()).then_some(Report::Cancelled),
        Stage::Exited(exit) => match run.stop.map_or(exit, Exit::Stopped) {
            Exit::Completed => Some(Report::Completed),
            Exit::Failed => Some(Report::Failed),
            Exit::HostFault | Exit::Stopped(StopCause::Lease | StopCause::Requeue) => Some(Report::Requeue),
            Exit::Stopped(StopCause::Cancelled) => Some(Report::Cancelled),
            Exit::Stopped(StopCause::Superseded) => None,
        },
    }
}
