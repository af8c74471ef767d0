//! An attempt on a host: what `worker::attempt` does with the orchestrator, a trainer that only takes time and writes a
//! log, and the supervisor that ends it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use app::domain::ids::JobId;
use app::protocol::agents::StatusReport;
use app::protocol::agents::dispatch::JobOffer;
use bytes::Bytes;
use tokio::sync::watch;

use super::checks::Checks;
use super::host::Host;
use super::trace;
use crate::worker::api::{JobApi, OrchestratorError, retry_until_answered};
use crate::worker::clock;
use crate::worker::context::AgentContext;
use crate::worker::files::{AttemptExit, AttemptKey, StopCause, VERSION};
use crate::worker::outcome;
use crate::worker::secret::Secret;
use crate::worker::state::AdoptedAttempt;
use crate::worker::supervisor::lease::{LeaseStatus, POLL_INTERVAL, lease_status};

/// The trainer writes a line this often.
const LINE_INTERVAL_MS: u64 = 1_700;
/// How often new lines are sent.
const SEND_INTERVAL: Duration = Duration::from_secs(2);
/// The longest request with lines, in bytes.
const MAX_CHUNK_BYTES: usize = 4_096;
/// How long a trainer takes to stop when asked to, in ms.
const STOP_MS: u64 = 700;
/// Grace period of a trainer whose lease expires, in ms: the agent's default.
const GRACE_MS: u64 = 60_000;

/// What is on the host's disk about an attempt.
#[derive(Debug)]
pub struct StoredAttempt {
    offer: JobOffer,
    is_accepted: bool,
    is_reported_running: bool,
    log_acked: u64,
    trainer: Trainer,
    /// The stop request for the supervisor.
    stop: Option<StopCause>,
    report: Option<StatusReport>,
    is_delivered: bool,
}

#[derive(Debug)]
enum Trainer {
    NotStarted,
    Running { started_ms: u64 },
    Ended { log_length: u64, exit: AttemptExit },
}

/// How a trainer exits by itself: after this time, with this code. It depends on the attempt only.
fn natural_end(key: &AttemptKey) -> (u64, i32) {
    let bytes = key.job_id.as_str().bytes();
    let hash = bytes.fold(u64::from(key.attempt.0), |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let code = match hash % 10 {
        0 => 1,
        1 => 75,
        _ => 0,
    };
    (2_000 + hash % 150_000, code)
}

/// A part of a trainer's log.
pub fn log_text(job: &JobId, attempt: u32, from: u64, until: u64) -> Vec<u8> {
    let line = |number: u64| format!("{job} {attempt:>4} line {number:>8}\n");
    let width = line(0).len() as u64;
    let first = from / width;
    let text: String = (first..until.div_ceil(width)).map(line).collect();
    let start = usize::try_from(from - first * width).unwrap_or_default();
    let length = usize::try_from(until - from).unwrap_or_default();
    text.as_bytes()[start..start + length].to_vec()
}

/// The length of a trainer's log after this time.
pub fn log_length(job: &JobId, elapsed_ms: u64) -> u64 {
    (elapsed_ms / LINE_INTERVAL_MS) * (format!("{job} {:>4} line {:>8}\n", 0, 0).len() as u64)
}

impl StoredAttempt {
    pub fn new(offer: JobOffer) -> Self {
        Self {
            offer,
            is_accepted: false,
            is_reported_running: false,
            log_acked: 0,
            trainer: Trainer::NotStarted,
            stop: None,
            report: None,
            is_delivered: false,
        }
    }

    pub fn to_adopted(&self, key: &AttemptKey) -> AdoptedAttempt {
        AdoptedAttempt { key: key.clone(), gpus: self.offer.gpus.clone(), is_finished: self.is_delivered }
    }

    /// The host restarts: a trainer that was running is gone.
    pub fn lose_trainer(&mut self, key: &AttemptKey, checks: &Checks) {
        let exit = AttemptExit { host_fault: true, error: Some("the host was restarted".to_owned()), ..exit_now() };
        match self.trainer {
            Trainer::Running { .. } => self.end(key, exit, checks),
            Trainer::NotStarted if !self.is_delivered => self.trainer = Trainer::Ended { log_length: 0, exit },
            Trainer::NotStarted | Trainer::Ended { .. } => {}
        }
    }

    fn written(&self, key: &AttemptKey) -> u64 {
        match &self.trainer {
            Trainer::NotStarted => 0,
            Trainer::Running { started_ms } => log_length(&key.job_id, clock::boot_ms() - started_ms),
            Trainer::Ended { log_length, .. } => *log_length,
        }
    }

    fn end(&mut self, key: &AttemptKey, exit: AttemptExit, checks: &Checks) {
        trace::record(format_args!("{key} trainer ends: {:?} {:?} {:?}", exit.code, exit.stopped, exit.error));
        let log_length = self.written(key);
        checks.trainer_ended(key, &exit, log_length);
        self.trainer = Trainer::Ended { log_length, exit };
    }
}

fn exit_now() -> AttemptExit {
    AttemptExit { version: VERSION, ended_at: clock::now(), is_flushed: true, ..AttemptExit::default() }
}

/// Runs the attempt to its end. Returns whether its end was reported, and not dropped because it was superseded.
pub async fn run(
    host: &Rc<Host>,
    context: &Arc<AgentContext>,
    key: &AttemptKey,
    stop: &watch::Sender<Option<StopCause>>,
) -> bool {
    let token = host.read(key, |attempt| Secret::new(&attempt.offer.upload_token));
    let api = JobApi::new(context.api.clone(), key.clone(), token, None);
    let attempt = Attempt { host, context, key, stop, api };
    let is_reported = match attempt.run_to_end().await {
        Some(report) => match attempt.report_end(report).await {
            Some(is_reported) => is_reported,
            // The next agent with a valid token reports it.
            None => return false,
        },
        None => false,
    };
    host.change(key, |attempt| attempt.is_delivered = true);
    is_reported
}

struct Attempt<'a> {
    host: &'a Rc<Host>,
    context: &'a Arc<AgentContext>,
    key: &'a AttemptKey,
    stop: &'a watch::Sender<Option<StopCause>>,
    api: JobApi,
}

impl Host {
    fn read<T>(&self, key: &AttemptKey, read: impl FnOnce(&StoredAttempt) -> T) -> T {
        read(&self.attempts.borrow()[key])
    }

    fn change<T>(&self, key: &AttemptKey, change: impl FnOnce(&mut StoredAttempt) -> T) -> T {
        change(self.attempts.borrow_mut().get_mut(key).expect("attempts are never removed"))
    }
}

impl Attempt<'_> {
    async fn run_to_end(&self) -> Option<StatusReport> {
        if let Some(report) = self.host.read(self.key, |attempt| attempt.report.clone()) {
            return Some(report);
        }
        let exit = match self.prepare().await {
            Ok(()) => self.monitor().await,
            Err(exit) => exit,
        };
        if *self.stop.borrow() == Some(StopCause::Superseded) {
            return None;
        }
        let report = outcome::status_report(self.key, &exit, "")?;
        self.host.change(self.key, |attempt| attempt.report = Some(report.clone()));
        Some(report)
    }

    /// Accepts the offer and starts the trainer, unless an earlier agent has.
    async fn prepare(&self) -> Result<(), AttemptExit> {
        if self.host.read(self.key, |attempt| !matches!(attempt.trainer, Trainer::NotStarted)) {
            return Ok(());
        }
        tokio::select! {
            biased;
            cause = self.wait_for_stop(StopCause::Requeue) => return Err(AttemptExit { stopped: Some(cause), ..exit_now() }),
            result = self.accept() => result?,
        }
        let is_exclusive = self.host.read(self.key, |attempt| attempt.offer.exclusive);
        if is_exclusive {
            self.host.lease.set(*self.context.api.lease.subscribe().borrow());
            if !matches!(self.host.lease_status(), LeaseStatus::Active { .. }) {
                return Err(AttemptExit { stopped: Some(StopCause::Lease), ..exit_now() });
            }
        }
        let gpus = self.host.read(self.key, |attempt| attempt.offer.gpus.clone());
        self.host.checks.trainer_started(self.host.index, self.key, is_exclusive, &gpus);
        trace::record(format_args!("host {} starts {}", self.host.index, self.key));
        self.host.change(self.key, |attempt| attempt.trainer = Trainer::Running { started_ms: clock::boot_ms() });
        tokio::task::spawn_local(supervise(Rc::clone(self.host), self.key.clone()));
        Ok(())
    }

    async fn accept(&self) -> Result<(), AttemptExit> {
        if !self.host.read(self.key, |attempt| attempt.is_accepted) {
            let accepted = self.report(&self.key.status_report("starting")).await;
            if accepted.is_err() {
                self.supersede();
                return Err(AttemptExit { stopped: Some(StopCause::Superseded), ..exit_now() });
            }
            self.host.change(self.key, |attempt| attempt.is_accepted = true);
        }
        // The first response that renews it may have been lost.
        let mut leases = self.context.api.lease.subscribe();
        // Cannot fail: the client owns the sender.
        let _ = leases.wait_for(Option::is_some).await;
        Ok(())
    }

    async fn report(&self, report: &StatusReport) -> Result<(), OrchestratorError> {
        retry_until_answered(&self.context.reconnect_signal, "reporting", async || self.api.report_status(report).await)
            .await
    }

    fn supersede(&self) {
        self.stop.send_replace(Some(StopCause::Superseded));
    }

    fn handle_error(&self, error: &OrchestratorError) {
        if matches!(error, OrchestratorError::Conflict { .. } | OrchestratorError::NotFound(_)) {
            self.supersede();
        }
    }

    async fn wait_for_stop(&self, weakest: StopCause) -> StopCause {
        let mut orders = self.stop.subscribe();
        let order = orders.wait_for(|order| order.is_some_and(|cause| cause >= weakest)).await;
        order.ok().and_then(|order| *order).unwrap_or(weakest)
    }

    async fn unless_superseded(&self, task: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            _ = self.wait_for_stop(StopCause::Superseded) => {}
            () = task => {}
        }
    }

    /// Runs until the trainer has exited and its log is delivered.
    async fn monitor(&self) -> AttemptExit {
        let done = watch::Sender::new(false);
        let exit = async {
            let exit = self.wait_for_exit().await;
            done.send_replace(true);
            exit
        };
        let until_done = |mut done: watch::Receiver<bool>| async move {
            let _ = done.wait_for(|done| *done).await;
        };
        let beside = async {
            tokio::select! {
                () = self.keep_lease() => {}
                () = self.forward_stop_requests() => {}
                () = until_done(done.subscribe()) => {}
            }
        };
        let (exit, ..) = tokio::join!(
            exit,
            beside,
            self.unless_superseded(self.report_running()),
            self.unless_superseded(self.upload_log(done.subscribe())),
        );
        exit
    }

    async fn wait_for_exit(&self) -> AttemptExit {
        loop {
            let exit = self.host.read(self.key, |attempt| match &attempt.trainer {
                Trainer::Ended { exit, .. } => Some(exit.clone()),
                Trainer::NotStarted | Trainer::Running { .. } => None,
            });
            match exit {
                Some(exit) => return exit,
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn keep_lease(&self) {
        let mut leases = self.context.api.lease.subscribe();
        loop {
            self.host.lease.set(*leases.borrow_and_update());
            if leases.changed().await.is_err() {
                return;
            }
        }
    }

    async fn forward_stop_requests(&self) {
        let mut orders = self.stop.subscribe();
        loop {
            let order = *orders.borrow_and_update();
            self.host.change(self.key, |attempt| attempt.stop = attempt.stop.max(order));
            if orders.changed().await.is_err() {
                return;
            }
        }
    }

    async fn report_running(&self) {
        if self.host.read(self.key, |attempt| attempt.is_reported_running) {
            return;
        }
        match self.report(&self.key.status_report("running")).await {
            Ok(()) => self.host.change(self.key, |attempt| attempt.is_reported_running = true),
            Err(error) => self.handle_error(&error),
        }
    }

    async fn upload_log(&self, done: watch::Receiver<bool>) {
        loop {
            let has_ended = *done.borrow();
            let (acked, written) = self.host.read(self.key, |attempt| (attempt.log_acked, attempt.written(self.key)));
            if acked < written {
                let until = written.min(acked + MAX_CHUNK_BYTES as u64);
                let bytes = Bytes::from(log_text(&self.key.job_id, self.key.attempt.0, acked, until));
                let sent = retry_until_answered(&self.context.reconnect_signal, "uploading", async || {
                    self.api.upload_log(acked, 0, bytes.clone()).await
                })
                .await;
                match sent {
                    Ok(ack) => self.host.change(self.key, |attempt| attempt.log_acked = ack.durable.min(written)),
                    Err(OrchestratorError::Conflict { durable: Some(durable), code, .. }) if code == "log_gap" => {
                        self.host.change(self.key, |attempt| attempt.log_acked = durable);
                    }
                    Err(error) => {
                        self.handle_error(&error);
                        return;
                    }
                }
            } else if has_ended {
                return;
            } else {
                tokio::time::sleep(SEND_INTERVAL).await;
            }
        }
    }

    /// Reports the end. `None` if the token was rejected.
    async fn report_end(&self, report: StatusReport) -> Option<bool> {
        let result = tokio::select! {
            biased;
            _ = self.wait_for_stop(StopCause::Superseded) => return Some(false),
            result = self.report(&report) => result,
        };
        match result {
            Ok(()) => Some(true),
            Err(OrchestratorError::Unauthorized(_)) => None,
            Err(_) => Some(false),
        }
    }
}

impl Host {
    /// What the lease on disk requires now.
    fn lease_status(&self) -> LeaseStatus {
        self.lease.get().map_or(LeaseStatus::Expired, |lease| lease_status(clock::boot_ms(), &lease, GRACE_MS))
    }
}

/// The supervisor: ends the trainer when it is done, when it must stop, or when its lease expires.
async fn supervise(host: Rc<Host>, key: AttemptKey) {
    let (duration_ms, code) = natural_end(&key);
    let mut stopping: Option<(StopCause, u64)> = None;
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let (started_ms, order, is_exclusive) = {
            let attempts = host.attempts.borrow();
            let attempt = &attempts[&key];
            // The host was restarted.
            let Trainer::Running { started_ms } = attempt.trainer else { return };
            (started_ms, attempt.stop, attempt.offer.exclusive)
        };
        let now = clock::boot_ms();
        let lease = if is_exclusive { host.lease_status() } else { LeaseStatus::Active { left_ms: u64::MAX } };
        let request = match lease {
            LeaseStatus::Expired => {
                let exit = AttemptExit { stopped: Some(StopCause::Lease), ..exit_now() };
                host.change(&key, |attempt| attempt.end(&key, exit, &host.checks));
                return;
            }
            LeaseStatus::Expiring { .. } => Some(order.unwrap_or(StopCause::Lease)),
            LeaseStatus::Active { .. } => order,
        };
        if let (Some(cause), None) = (request, stopping) {
            stopping = Some((cause, now + STOP_MS));
        }
        let exit = match stopping {
            Some((cause, at)) if now >= at => AttemptExit { stopped: Some(cause), ..exit_now() },
            _ if now >= started_ms + duration_ms => AttemptExit { code: Some(code), ..exit_now() },
            _ => continue,
        };
        host.change(&key, |attempt| attempt.end(&key, exit, &host.checks));
        return;
    }
}
