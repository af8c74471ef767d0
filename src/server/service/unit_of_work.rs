//! The one way to change state: a unit of work inside a transaction, with its audit entries and change notifications.

use std::sync::{Arc, Mutex};

use app::domain::access::{Permission, Permissions};
use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{AttemptLoss, Job, JobFailure, JobState, Lease, PreviousAttempt, Waiting};
use app::domain::time::Timestamp;
use app::domain::trace_context::TraceContext;
use app::domain::worker::{OfflineCause, Worker};
use app::protocol::topic::Topic;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::auth_grant::AuthGrant;
use super::error::ServiceError;
use crate::metrics::dispatch::DispatchStep;
use crate::service::ServiceContext;
use crate::store::jobs::attempts::AttemptEnd;
use crate::store::workers::StoredWorker;
use crate::store::{StoreError, TransactionWork, Tx};

/// The caller, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `ada`, `ada/ci` (her token of that name), `worker:w_…`, `system`.
    pub actor: String,
    /// The owner of jobs that are created: `ada`.
    pub owner: String,
    /// The caller's authorization; `None` for agents, unauthenticated callers and the server itself.
    pub grant: Option<AuthGrant>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The trace of the request.
    pub trace: Option<TraceContext>,
}

impl Caller {
    /// The server itself.
    pub fn system() -> Self {
        let name = || "system".to_owned();
        Self { actor: name(), owner: name(), grant: None, request_id: None, trace: None }
    }
}

pub struct UnitOfWork<'t> {
    pub tx: &'t mut dyn Tx,
    pub context: &'t ServiceContext,
    /// One time for the whole unit.
    pub now: Timestamp,
    caller: &'t Caller,
    changed_topics: Vec<Topic>,
}

impl ServiceContext {
    /// Runs a unit of work. It may run twice (see [`crate::store`]), so it must be repeatable; it decides before it
    /// writes. Change notifications are sent after the commit, also if the client has disconnected meanwhile.
    pub async fn change<T, F>(self: &Arc<Self>, caller: Caller, step: F) -> Result<T, ServiceError>
    where
        T: Send + 'static,
        F: for<'u> Fn(&'u mut UnitOfWork<'_>) -> BoxFuture<'u, Result<T, ServiceError>> + Send + Sync + 'static,
    {
        let context = Arc::clone(self);
        let task = tokio::spawn(async move {
            let outcome = Arc::new(Mutex::new(None));
            let work = into_work(Arc::clone(&context), caller, step, Arc::clone(&outcome));
            let written = context.store.write(work).await;
            let outcome = outcome.lock().expect("no panic while it is held").take();
            match (written, outcome) {
                (Ok(()), Some(Ok(value))) => Ok(value),
                (Err(StoreError::Rejected), Some(Err(error))) => Err(error),
                (Err(error), _) => Err(ServiceError::Store(error)),
                (Ok(()), _) => {
                    Err(ServiceError::Store(StoreError::Unavailable("the unit of work did not run".to_owned())))
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(ServiceError::Store(StoreError::Unavailable(error.to_string()))))
    }
}

type UnitResult<T> = Arc<Mutex<Option<Result<T, ServiceError>>>>;

fn into_work<T, F>(context: Arc<ServiceContext>, caller: Caller, step: F, outcome: UnitResult<T>) -> TransactionWork
where
    T: Send + 'static,
    F: for<'u> Fn(&'u mut UnitOfWork<'_>) -> BoxFuture<'u, Result<T, ServiceError>> + Send + Sync + 'static,
{
    let shared = Arc::new((context, caller, step));
    Box::new(move |tx| {
        let (shared, outcome) = (Arc::clone(&shared), Arc::clone(&outcome));
        Box::pin(async move {
            let (context, caller, step) = &*shared;
            let mut unit = UnitOfWork::new(tx, context, caller);
            let result = match unit.recheck_authorization().await {
                Ok(()) => step(&mut unit).await,
                Err(error) => Err(error),
            };
            match result {
                Err(ServiceError::Store(error)) => Err(error),
                Err(error) => {
                    *outcome.lock().expect("no panic while it is held") = Some(Err(error));
                    Err(StoreError::Rejected)
                }
                Ok(value) => {
                    unit.publish();
                    *outcome.lock().expect("no panic while it is held") = Some(Ok(value));
                    Ok(())
                }
            }
        })
    })
}

impl<'t> UnitOfWork<'t> {
    /// Begins a unit inside a transaction.
    pub fn new(tx: &'t mut dyn Tx, context: &'t ServiceContext, caller: &'t Caller) -> Self {
        Self { tx, context, now: context.now(), caller, changed_topics: Vec::new() }
    }

    /// Re-checks authorization inside the transaction; it may have been revoked since the request was authenticated.
    async fn recheck_authorization(&mut self) -> Result<(), ServiceError> {
        let Some(grant) = &self.caller.grant else { return Ok(()) };
        if grant.is_valid(self.tx, self.now, self.context.policy.accounts.session_idle).await? {
            Ok(())
        } else {
            Err(ServiceError::NotAuthenticated)
        }
    }

    /// Returns whether the caller has a permission; the server itself, and the operator on its host, have all.
    pub fn has_permission(&self, permission: Permission) -> bool {
        self.caller.grant.as_ref().is_none_or(|grant| grant.permissions().contains(permission))
    }

    /// Rejects a caller who would grant permissions that they do not have, or act on a user with more permissions.
    /// Permissions that all users have for their own account do not count.
    pub fn require_covered(&self, permissions: Permissions) -> Result<(), ServiceError> {
        let granted = self.caller.grant.as_ref().map(AuthGrant::permissions);
        let is_counted = |permission: &Permission| *permission != Permission::AccountManage;
        let missing = granted.and_then(|granted| {
            permissions.iter().filter(is_counted).find(|permission| !granted.contains(*permission))
        });
        missing.map_or(Ok(()), |missing| Err(ServiceError::PermissionDenied(missing)))
    }

    /// Ends the unit: its change notifications are sent after the commit.
    pub fn publish(&mut self) {
        self.tx.notify(self.changed_topics.drain(..).map(|topic| topic.to_string()).collect());
    }

    /// Requests planning at the end of the group commit, because something may be offered now.
    pub fn request_planning(&mut self) {
        self.tx.request_planning();
    }

    /// Loads a worker; fails if it does not exist.
    pub async fn worker(&mut self, id: &WorkerId) -> Result<StoredWorker, ServiceError> {
        self.tx.worker(id).await?.ok_or_else(|| ServiceError::WorkerNotFound(id.clone()))
    }

    /// Loads a job; fails if it does not exist.
    pub async fn job(&mut self, id: &JobId) -> Result<Job, ServiceError> {
        self.tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))
    }

    /// Notifies this topic after the commit.
    pub fn notify(&mut self, topic: Topic) {
        self.changed_topics.push(topic);
    }

    pub fn actor(&self) -> &str {
        &self.caller.actor
    }

    /// The owner of jobs that are created.
    pub fn owner(&self) -> &str {
        &self.caller.owner
    }

    /// The trace of a job that is submitted now: that of the request, or a new one.
    pub fn trace(&self) -> TraceContext {
        let random = &*self.context.random;
        let new_root = || TraceContext::new_root(random.bytes());
        self.caller.trace.as_ref().map_or_else(new_root, |trace| trace.child(random.bytes()))
    }

    /// Appends to the audit log.
    pub async fn record(&mut self, action: AuditAction, target: &str, detail: &Value) -> Result<(), ServiceError> {
        self.record_as(&self.caller.actor.clone(), action, target, detail).await
    }

    /// Appends for an actor who is only known by this entry: a user who signs in.
    pub async fn record_as(
        &mut self,
        actor: &str,
        action: AuditAction,
        target: &str,
        detail: &Value,
    ) -> Result<(), ServiceError> {
        let entry = AuditEvent {
            at: self.now,
            actor: actor.to_owned(),
            action,
            target: target.to_owned(),
            detail: detail.to_string(),
            request_id: self.caller.request_id.clone(),
        };
        self.notify(Topic::AuditLog);
        Ok(self.tx.append_audit(entry).await?)
    }

    /// Writes a worker if it has changed, and audits the change.
    pub async fn save_worker(
        &mut self,
        before: &Worker,
        after: &Worker,
        action: AuditAction,
        detail: &Value,
    ) -> Result<(), ServiceError> {
        if before == after {
            return Ok(());
        }
        self.save_worker_unrecorded(before, after).await?;
        self.record(action, after.id.as_str(), detail).await
    }

    /// Writes a worker's change that no user has made and that alternates: it is not audited.
    pub async fn save_worker_unrecorded(&mut self, before: &Worker, after: &Worker) -> Result<(), ServiceError> {
        if before == after {
            return Ok(());
        }
        self.tx.update_worker(before, after).await?;
        self.notify(Topic::Workers);
        self.notify(Topic::Worker(after.id.clone()));
        Ok(())
    }

    /// Writes a job if it has changed, with the effects on its attempt.
    pub async fn save_job(&mut self, before: &Job, after: &Job) -> Result<(), ServiceError> {
        self.save_job_with_detail(before, after, Map::new()).await
    }

    /// Writes a job with details for the audit log.
    pub async fn save_job_with_detail(
        &mut self,
        before: &Job,
        after: &Job,
        extra_detail: Map<String, Value>,
    ) -> Result<(), ServiceError> {
        if before == after {
            return Ok(());
        }
        if before.active_lease().is_some() && after.active_lease().is_none() {
            self.charge_share(before, after.state.loss()).await?;
        }
        self.tx.update_job(before, after).await?;
        if before.state == after.state || waits_as_before(before, after) {
            // A late report has ended the fencing delay, or the attempt can no longer be recovered. What became of it is
            // recorded already.
            self.request_planning();
            self.notify(Topic::Job(after.id.clone()));
            return Ok(());
        }
        self.save_attempt(before, after).await?;
        let (action, mut detail) = describe_change(before, after);
        if let Value::Object(detail) = &mut detail {
            detail.extend(extra_detail);
        }
        self.record(action, after.id.as_str(), &detail).await?;
        self.notify(Topic::Jobs);
        self.notify(Topic::Job(after.id.clone()));
        self.notify(Topic::Workers);
        for lease in [before.active_lease(), after.active_lease()].into_iter().flatten() {
            self.notify(Topic::Worker(lease.worker.clone()));
        }
        Ok(())
    }

    async fn save_attempt(&mut self, before: &Job, after: &Job) -> Result<(), ServiceError> {
        let job = &after.id;
        // The job still waits, in another state: its attempt does not change.
        let wait = before.state.waiting().is_some() && after.state.waiting().is_some();
        if wait && before.state.status() != after.state.status() {
            return Ok(());
        }
        let end = |outcome, error, exit_code| AttemptEnd { at: self.now, outcome, error, loss_code: None, exit_code };
        let (attempt, end) = match &after.state {
            JobState::Starting { lease, .. } | JobState::Running { lease, .. } => {
                if before.state.waiting().is_some() {
                    self.tx.recover_attempt(job, lease.attempt).await?;
                }
                if let JobState::Offered { since, .. } = &before.state {
                    self.context.metrics.dispatch.record(DispatchStep::Accepted, *since);
                }
                return Ok(self.tx.start_attempt(job, lease.attempt, self.now).await?);
            }
            // Planning records a new offer, because it knows the worker's name and the attempt's token.
            JobState::Offered { .. }
            | JobState::Cancelling { .. }
            | JobState::Queued(Waiting { previous: None, .. })
            | JobState::Cancelled { lease: None, .. } => return Ok(()),
            JobState::Queued(Waiting { previous: Some(PreviousAttempt { lease, loss: None }), .. }) => {
                (lease.attempt, end("expired", None, None))
            }
            JobState::Queued(Waiting { previous: Some(PreviousAttempt { lease, loss: Some(loss) }), .. })
            | JobState::Failed { lease, failure: JobFailure::Lost(loss), .. } => {
                let ended = end("lost", Some(describe_loss(loss)), loss_exit_code(loss));
                (lease.attempt, AttemptEnd { loss_code: Some(loss.code()), ..ended })
            }
            JobState::Completed { lease, .. } => (lease.attempt, end("completed", None, Some(0))),
            // A lost attempt stays lost if its job is cancelled while it waits.
            JobState::Cancelled { .. } if before.active_lease().is_none() => return Ok(()),
            JobState::Cancelled { lease: Some(lease), .. } => (lease.attempt, end("cancelled", None, None)),
            JobState::Failed { lease, failure: JobFailure::Trainer { exit_code, error }, .. } => {
                (lease.attempt, end("failed", Some(error.clone()), *exit_code))
            }
            JobState::Failed { lease, failure: failure @ JobFailure::RuntimeExceeded { .. }, .. } => {
                (lease.attempt, end("failed", Some(describe_failure(failure)), None))
            }
        };
        Ok(self.tx.end_attempt(job, attempt, &end).await?)
    }
}

/// The audit entry of a job's change: one action per state that can be reached.
/// Whether a job is still in the queue, since the same time and for as long.
fn waits_as_before(before: &Job, after: &Job) -> bool {
    let wait = |job: &Job| match &job.state {
        JobState::Queued(Waiting { since, not_before, .. }) => Some((*since, *not_before)),
        _ => None,
    };
    wait(before).is_some() && wait(before) == wait(after)
}

fn describe_change(before: &Job, after: &Job) -> (AuditAction, Value) {
    match &after.state {
        JobState::Queued(waiting) => match &before.state {
            // A further state in which a job waits decides here what its return to the queue is called.
            JobState::Queued(_)
            | JobState::Offered { .. }
            | JobState::Starting { .. }
            | JobState::Running { .. }
            | JobState::Cancelling { .. }
            | JobState::Completed { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled { .. } => describe_requeue(waiting),
        },
        JobState::Offered { lease, .. } => (AuditAction::JobOffered, lease_detail(lease)),
        JobState::Starting { lease, .. } => (AuditAction::JobStarting, lease_detail(lease)),
        JobState::Running { lease, .. } => (AuditAction::JobRunning, lease_detail(lease)),
        JobState::Cancelling { lease, .. } => (AuditAction::JobCancelling, lease_detail(lease)),
        JobState::Completed { lease, .. } => (AuditAction::JobCompleted, lease_detail(lease)),
        JobState::Cancelled { .. } => {
            (AuditAction::JobCancelled, before.active_lease().map_or(Value::Null, lease_detail))
        }
        JobState::Failed { lease: last, failure, .. } => {
            let mut detail =
                json!({"attempt": last.attempt, "worker_id": last.worker, "reason": describe_failure(failure)});
            if let JobFailure::Lost(loss) = failure {
                detail["loss_code"] = json!(loss.code());
            }
            (AuditAction::JobFailed, detail)
        }
    }
}

fn describe_requeue(waiting: &Waiting) -> (AuditAction, Value) {
    match &waiting.previous {
        Some(PreviousAttempt { lease: last, loss: Some(loss) }) => {
            let (reason, loss_code) = (describe_loss(loss), loss.code());
            let detail =
                json!({"attempt": last.attempt, "worker_id": last.worker, "reason": reason, "loss_code": loss_code});
            (AuditAction::JobRequeued, detail)
        }
        Some(PreviousAttempt { lease, loss: None }) => (AuditAction::JobOfferExpired, lease_detail(lease)),
        None => (AuditAction::JobOfferExpired, Value::Null),
    }
}

fn lease_detail(lease: &Lease) -> Value {
    json!({"attempt": lease.attempt, "worker_id": lease.worker, "gpus": lease.gpus})
}

/// Describes a failure for the audit log and API clients.
pub fn describe_failure(failure: &JobFailure) -> String {
    match failure {
        JobFailure::Trainer { exit_code, error } => describe_trainer_failure(*exit_code, error),
        JobFailure::RuntimeExceeded { allowed } => {
            format!("Stopped after {} s: max_runtime_seconds was reached.", allowed.0 / 1_000)
        }
        JobFailure::Lost(loss) => {
            format!("No retries left. The last attempt was lost: {}", describe_loss(loss))
        }
    }
}

/// Describes a loss for the audit log and API clients. Pages have sentences of their own for its code.
pub fn describe_loss(loss: &AttemptLoss) -> String {
    match loss {
        AttemptLoss::UnknownToAgent => {
            "The agent reconnected without the job; its host was probably restarted.".to_owned()
        }
        AttemptLoss::WorkerOffline(cause) => describe_offline_cause(*cause).to_owned(),
        AttemptLoss::StoppedByAgent => "The agent stopped it without a request.".to_owned(),
        AttemptLoss::NeverStarted => {
            "The older agent accepted the job and never started the trainer; see the agent's log.".to_owned()
        }
        AttemptLoss::Evicted => "The worker's drain deadline passed.".to_owned(),
        AttemptLoss::Preempted { by, lost, step } => {
            let continues =
                step.map_or_else(|| "It starts again".to_owned(), |step| format!("It continues from step {step}"));
            let minutes = (lost.0.max(0).unsigned_abs() + 30_000) / 60_000;
            format!("Stopped so that job {by} could start. {continues}; lost work: {minutes} min.")
        }
        AttemptLoss::Requeued(reason) if reason.is_empty() => "The agent returned the job.".to_owned(),
        AttemptLoss::Requeued(reason) => reason.clone(),
        AttemptLoss::TrainerFailed { exit_code, error } => describe_trainer_failure(*exit_code, error),
    }
}

const fn describe_offline_cause(cause: OfflineCause) -> &'static str {
    match cause {
        OfflineCause::HeartbeatTimeout => "The worker went offline: its heartbeats stopped (heartbeat timeout).",
        OfflineCause::Disconnected => "The worker went offline: its agent disconnected.",
        OfflineCause::TokenRotated => "The worker went offline: its token was rotated.",
    }
}

fn describe_trainer_failure(exit_code: Option<i32>, error: &str) -> String {
    match (exit_code, error.is_empty()) {
        (Some(code), true) => format!("The trainer exited with code {code}; see its log."),
        (None, true) => "The trainer could not be started; see the worker's log.".to_owned(),
        (_, false) => error.to_owned(),
    }
}

fn loss_exit_code(loss: &AttemptLoss) -> Option<i32> {
    match loss {
        AttemptLoss::TrainerFailed { exit_code, .. } => *exit_code,
        AttemptLoss::UnknownToAgent
        | AttemptLoss::WorkerOffline(_)
        | AttemptLoss::Evicted
        | AttemptLoss::Preempted { .. }
        | AttemptLoss::StoppedByAgent
        | AttemptLoss::NeverStarted
        | AttemptLoss::Requeued(_) => None,
    }
}
