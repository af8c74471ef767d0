//! The one way a change happens: a unit of work inside a transaction, with its audit entries and its doorbells.

use std::sync::{Arc, Mutex};

use app::domain::access::{Permission, Permissions};
use app::domain::audit::{Action, Entry};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Failure, Job, Lease, Loss, Previous, State};
use app::domain::time::Timestamp;
use app::domain::trace::Trace;
use app::domain::worker::Worker;
use app::protocol::topic::Topic;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::Core;
use super::access::Admission;
use super::refusal::Refusal;
use crate::metrics::dispatch::Step;
use crate::store::attempts::AttemptEnd;
use crate::store::workers::StoredWorker;
use crate::store::{StoreError, Tx, Work};

/// Who asked, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `ada`, `ada/ci` (her token of that name), `worker:w_…`, `system`.
    pub actor: String,
    /// Whose the jobs are that come of it: `ada`.
    pub owner: String,
    /// By what a person was let in; none for agents, strangers and the server itself.
    pub admission: Option<Admission>,
    /// The request it came with.
    pub request_id: Option<String>,
    /// The trace that the request belongs to.
    pub trace: Option<Trace>,
}

impl Caller {
    /// The server itself.
    pub fn system() -> Self {
        let name = || "system".to_owned();
        Self { actor: name(), owner: name(), admission: None, request_id: None, trace: None }
    }
}

/// A transaction in progress.
pub struct Unit<'t> {
    /// The database.
    pub tx: &'t mut dyn Tx,
    /// Everything else.
    pub core: &'t Core,
    /// Now; one moment for the whole unit.
    pub now: Timestamp,
    caller: &'t Caller,
    touched: Vec<Topic>,
}

impl Core {
    /// Runs a unit of work. It may run twice (see [`crate::store`]), so it must be repeatable; it decides before it
    /// writes. The doorbells ring after the commit, also when whoever asked has gone meanwhile.
    pub async fn change<T, F>(self: &Arc<Self>, caller: Caller, step: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: for<'u> Fn(&'u mut Unit<'_>) -> BoxFuture<'u, Result<T, Refusal>> + Send + Sync + 'static,
    {
        let core = Arc::clone(self);
        let task = tokio::spawn(async move {
            let outcome = Arc::new(Mutex::new(None));
            let work = as_work(Arc::clone(&core), caller, step, Arc::clone(&outcome));
            let written = core.store.write(work).await;
            let outcome = outcome.lock().expect("no panic while it is held").take();
            match (written, outcome) {
                (Ok(()), Some(Ok(value))) => Ok(value),
                (Err(StoreError::Refused), Some(Err(refusal))) => Err(refusal),
                (Err(error), _) => Err(Refusal::Store(error)),
                (Ok(()), _) => Err(Refusal::Store(StoreError::Unavailable("the unit did not run".to_owned()))),
            }
        });
        task.await.unwrap_or_else(|error| Err(Refusal::Store(StoreError::Unavailable(error.to_string()))))
    }
}

type Outcome<T> = Arc<Mutex<Option<Result<T, Refusal>>>>;

fn as_work<T, F>(core: Arc<Core>, caller: Caller, step: F, outcome: Outcome<T>) -> Work
where
    T: Send + 'static,
    F: for<'u> Fn(&'u mut Unit<'_>) -> BoxFuture<'u, Result<T, Refusal>> + Send + Sync + 'static,
{
    let shared = Arc::new((core, caller, step));
    Box::new(move |tx| {
        let (shared, outcome) = (Arc::clone(&shared), Arc::clone(&outcome));
        Box::pin(async move {
            let (core, caller, step) = &*shared;
            let mut unit = Unit::new(tx, core, caller);
            let done = match unit.still_in().await {
                Ok(()) => step(&mut unit).await,
                Err(refusal) => Err(refusal),
            };
            match done {
                Err(Refusal::Store(error)) => Err(error),
                Err(refusal) => {
                    *outcome.lock().expect("no panic while it is held") = Some(Err(refusal));
                    Err(StoreError::Refused)
                }
                Ok(value) => {
                    unit.announce();
                    *outcome.lock().expect("no panic while it is held") = Some(Ok(value));
                    Ok(())
                }
            }
        })
    })
}

impl<'t> Unit<'t> {
    /// Begins one inside a transaction.
    pub fn new(tx: &'t mut dyn Tx, core: &'t Core, caller: &'t Caller) -> Self {
        Self { tx, core, now: core.now(), caller, touched: Vec::new() }
    }

    /// Refuses who was let in and would not be now: a request may take its time between the door and here.
    async fn still_in(&mut self) -> Result<(), Refusal> {
        let Some(admission) = &self.caller.admission else { return Ok(()) };
        if admission.holds(self.tx, self.now, self.core.policy.accounts.session_idle).await? {
            Ok(())
        } else {
            Err(Refusal::Nobody)
        }
    }

    /// Whether whoever asked has a permission; the server itself, and its host, have all.
    pub fn may(&self, permission: Permission) -> bool {
        self.caller.admission.as_ref().is_none_or(|admission| admission.permissions().has(permission))
    }

    /// Refuses a person who would give somebody more than they have, or take from somebody who has more. What everybody
    /// may do with an account of their own does not count.
    pub fn covers(&self, permissions: Permissions) -> Result<(), Refusal> {
        let theirs = self.caller.admission.as_ref().map(Admission::permissions);
        let counts = |one: &Permission| *one != Permission::AccountManage;
        let missing = theirs.and_then(|theirs| permissions.iter().filter(counts).find(|one| !theirs.has(*one)));
        missing.map_or(Ok(()), |missing| Err(Refusal::Denied(missing)))
    }

    /// Ends it: its doorbells ring after the commit.
    pub fn announce(&mut self) {
        self.tx.announce(self.touched.drain(..).map(|topic| topic.to_string()).collect());
    }

    /// Asks for planning once everything that is committed together has run: something can be offered now.
    pub fn plan_after(&mut self) {
        self.tx.plan_after();
    }

    /// A worker that must exist.
    pub async fn worker(&mut self, id: &WorkerId) -> Result<StoredWorker, Refusal> {
        self.tx.worker(id).await?.ok_or_else(|| Refusal::NoWorker(id.clone()))
    }

    /// A job that must exist.
    pub async fn job(&mut self, id: &JobId) -> Result<Job, Refusal> {
        self.tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))
    }

    /// Rings for this topic after the commit.
    pub fn touch(&mut self, topic: Topic) {
        self.touched.push(topic);
    }

    /// Who asked.
    pub fn actor(&self) -> &str {
        &self.caller.actor
    }

    /// Whose the jobs are that come of it.
    pub fn owner(&self) -> &str {
        &self.caller.owner
    }

    /// The trace that a job belongs to which is submitted now: that of the request, or a new one.
    pub fn trace(&self) -> Trace {
        let random = &*self.core.random;
        let begun = || Trace::begun(random.bytes());
        self.caller.trace.as_ref().map_or_else(begun, |trace| trace.child(random.bytes()))
    }

    /// Appends to the audit trail.
    pub async fn record(&mut self, action: Action, target: &str, detail: &Value) -> Result<(), Refusal> {
        self.record_by(&self.caller.actor.clone(), action, target, detail).await
    }

    /// The same for who became known only by what is recorded: somebody who logs in.
    pub async fn record_by(
        &mut self,
        actor: &str,
        action: Action,
        target: &str,
        detail: &Value,
    ) -> Result<(), Refusal> {
        let entry = Entry {
            at: self.now,
            actor: actor.to_owned(),
            action,
            target: target.to_owned(),
            detail: detail.to_string(),
            request_id: self.caller.request_id.clone(),
        };
        self.touch(Topic::Trail);
        Ok(self.tx.append_audit(entry).await?)
    }

    /// Writes a worker's change, if it is one.
    pub async fn save_worker(
        &mut self,
        before: &Worker,
        after: &Worker,
        action: Action,
        detail: &Value,
    ) -> Result<(), Refusal> {
        if before == after {
            return Ok(());
        }
        self.save_worker_unrecorded(before, after).await?;
        self.record(action, after.id.as_str(), detail).await
    }

    /// The same for what nobody has done, and goes to and fro: it has no place in the trail.
    pub async fn save_worker_unrecorded(&mut self, before: &Worker, after: &Worker) -> Result<(), Refusal> {
        if before == after {
            return Ok(());
        }
        self.tx.update_worker(before, after).await?;
        self.touch(Topic::Workers);
        self.touch(Topic::Worker(after.id.clone()));
        Ok(())
    }

    /// Writes a job's change, if it is one, and what follows from it for its attempt.
    pub async fn save_job(&mut self, before: &Job, after: &Job) -> Result<(), Refusal> {
        self.save_job_noting(before, after, Map::new()).await
    }

    /// The same, with particulars for the record.
    pub async fn save_job_noting(
        &mut self,
        before: &Job,
        after: &Job,
        particulars: Map<String, Value>,
    ) -> Result<(), Refusal> {
        if before == after {
            return Ok(());
        }
        self.tx.update_job(before, after).await?;
        self.save_attempt(before, after).await?;
        let (action, mut detail) = described(before, after);
        if let Value::Object(detail) = &mut detail {
            detail.extend(particulars);
        }
        self.record(action, after.id.as_str(), &detail).await?;
        self.touch(Topic::Jobs);
        self.touch(Topic::Job(after.id.clone()));
        self.touch(Topic::Workers);
        for lease in [before.live_lease(), after.live_lease()].into_iter().flatten() {
            self.touch(Topic::Worker(lease.worker.clone()));
        }
        Ok(())
    }

    async fn save_attempt(&mut self, before: &Job, after: &Job) -> Result<(), Refusal> {
        let job = &after.id;
        let end = |outcome, error, exit_code| AttemptEnd { at: self.now, outcome, error, exit_code };
        let (attempt, end) = match &after.state {
            State::Starting { lease, .. } | State::Running { lease, .. } => {
                if matches!(before.state, State::Queued { .. }) {
                    self.tx.reopen_attempt(job, lease.attempt).await?;
                }
                if let State::Offered { since, .. } = &before.state {
                    self.core.metrics.dispatch.decided(Step::Accepted, *since);
                }
                return Ok(self.tx.start_attempt(job, lease.attempt, self.now).await?);
            }
            // The offer is recorded where it is made: it needs the worker's name and the token.
            State::Offered { .. }
            | State::Cancelling { .. }
            | State::Queued { previous: None, .. }
            | State::Cancelled { lease: None, .. } => return Ok(()),
            State::Queued { previous: Some(Previous { lease, loss: None }), .. } => {
                (lease.attempt, end("expired", None, None))
            }
            State::Queued { previous: Some(Previous { lease, loss: Some(loss) }), .. }
            | State::Failed { lease, failure: Failure::Lost(loss), .. } => {
                (lease.attempt, end("lost", Some(loss_words(loss)), loss_code(loss)))
            }
            State::Completed { lease, .. } => (lease.attempt, end("completed", None, Some(0))),
            // A lost attempt stays lost when its job is cancelled while it waits.
            State::Cancelled { .. } if before.live_lease().is_none() => return Ok(()),
            State::Cancelled { lease: Some(lease), .. } => (lease.attempt, end("cancelled", None, None)),
            State::Failed { lease, failure: Failure::Trainer { exit_code, error }, .. } => {
                (lease.attempt, end("failed", Some(error.clone()), *exit_code))
            }
            State::Failed { lease, failure: failure @ Failure::OverTime { .. }, .. } => {
                (lease.attempt, end("failed", Some(failure_words(failure)), None))
            }
        };
        Ok(self.tx.end_attempt(job, attempt, &end).await?)
    }
}

/// The audit entry of a job's change: one word for each state that can be reached.
fn described(before: &Job, after: &Job) -> (Action, Value) {
    let lease = |lease: &Lease| json!({"attempt": lease.attempt, "worker_id": lease.worker, "gpus": lease.gpus});
    match &after.state {
        State::Queued { previous: Some(Previous { lease: last, loss: Some(loss) }), .. } => {
            let detail = json!({"attempt": last.attempt, "worker_id": last.worker, "reason": loss_words(loss)});
            (Action::JobRequeued, detail)
        }
        State::Queued { previous, .. } => {
            (Action::JobOfferExpired, previous.as_ref().map_or(Value::Null, |previous| lease(&previous.lease)))
        }
        State::Offered { lease: held, .. } => (Action::JobOffered, lease(held)),
        State::Starting { lease: held, .. } => (Action::JobStarting, lease(held)),
        State::Running { lease: held, .. } => (Action::JobRunning, lease(held)),
        State::Cancelling { lease: held, .. } => (Action::JobCancelling, lease(held)),
        State::Completed { lease: held, .. } => (Action::JobCompleted, lease(held)),
        State::Cancelled { .. } => (Action::JobCancelled, before.live_lease().map_or(Value::Null, lease)),
        State::Failed { lease: last, failure, .. } => {
            let detail = json!({"attempt": last.attempt, "worker_id": last.worker, "reason": failure_words(failure)});
            (Action::JobFailed, detail)
        }
    }
}

/// A failure in words, for the record and for API clients.
pub fn failure_words(failure: &Failure) -> String {
    match failure {
        Failure::Trainer { exit_code, error } => trainer_words(*exit_code, error),
        Failure::OverTime { allowed } => {
            format!(
                "It was stopped because it trained for {} s, as long as max_runtime_seconds allows.",
                allowed.0 / 1_000
            )
        }
        Failure::Lost(loss) => format!("The retries are used up. The last attempt was lost: {}", loss_words(loss)),
    }
}

/// A loss in words.
pub fn loss_words(loss: &Loss) -> String {
    match loss {
        Loss::AgentForgot => "The agent came back without the job; its host was probably restarted.".to_owned(),
        Loss::WorkerOffline => {
            "The worker went offline with the job: heartbeat timeout, or its agent left without it.".to_owned()
        }
        Loss::Evicted => "Its worker's drain came to its deadline.".to_owned(),
        Loss::Requeued(why) if why.is_empty() => "The agent gave the job back.".to_owned(),
        Loss::Requeued(why) => why.clone(),
        Loss::TrainerFailed { exit_code, error } => trainer_words(*exit_code, error),
    }
}

fn trainer_words(exit_code: Option<i32>, error: &str) -> String {
    match (exit_code, error.is_empty()) {
        (Some(code), true) => format!("The trainer ended with exit code {code}; its log says more."),
        (None, true) => "The trainer could not be run; its worker's log says more.".to_owned(),
        (_, false) => error.to_owned(),
    }
}

fn loss_code(loss: &Loss) -> Option<i32> {
    match loss {
        Loss::TrainerFailed { exit_code, .. } => *exit_code,
        Loss::AgentForgot | Loss::WorkerOffline | Loss::Evicted | Loss::Requeued(_) => None,
    }
}
