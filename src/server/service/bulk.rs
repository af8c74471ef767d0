//! Bulk actions on workers or jobs: each as if requested alone, with its own transaction and audit entry. They wait for
//! the writer together, so they share a flush.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::allowed_values::LimitedItems;
use app::domain::ids::{JobId, WorkerId};
use app::protocol::bulk::MAX_BULK_IDS;
use app::protocol::jobs::submit::RetryJob;
use app::protocol::status::BulkAction;
use app::protocol::workers::DrainWorker;
use futures_util::future::join_all;

use super::access::{Principal, Requirement};
use super::error::{IdKind, InvalidInput, ServiceError};
use super::unit_of_work::Caller;
use super::workers::{DrainTerms, drain_in};
use crate::service::ServiceContext;
use crate::service::access::AccessService;
use crate::service::jobs::JobService;
use crate::service::workers::WorkerService;

/// A bulk action.
#[derive(Debug, Clone)]
pub struct BulkRequest {
    pub action: BulkAction,
    /// The ids of the workers or jobs.
    pub ids: Vec<String>,
    /// Reason and deadline for draining.
    pub drain: DrainWorker,
    pub idempotency_key: Option<String>,
}

impl BulkRequest {
    pub fn new(action: BulkAction, ids: Vec<String>) -> Self {
        Self { action, ids, drain: DrainWorker::default(), idempotency_key: None }
    }
}

/// Returns what the routes of an action require; on jobs, the caller needs it for each of them.
pub const fn bulk_requirement(action: BulkAction) -> Requirement {
    match action {
        BulkAction::Drain | BulkAction::Resume => Requirement::Permission(Permission::AdminWorkers),
        BulkAction::Delete => Requirement::RecentlyAuthenticated(Permission::AdminWorkers),
        BulkAction::Cancel => Requirement::CancelJob,
        BulkAction::Retry => Requirement::SeeJobAnd(Permission::JobSubmit),
    }
}

/// The effect on one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkItemEffect {
    /// The action was applied.
    Done,
    /// The job was retried as this one.
    Retried(JobId),
    /// Nothing had to be changed.
    Unchanged,
}

/// A target's id and its outcome.
pub type BulkItemOutcome = (String, Result<BulkItemEffect, ServiceError>);

/// Actions on several jobs or workers.
pub struct BulkService {
    pub(super) access: Arc<AccessService>,
    pub(super) jobs: Arc<JobService>,
    pub(super) workers: Arc<WorkerService>,
    pub(super) context: Arc<ServiceContext>,
}

impl BulkService {
    /// Applies the action to each target, and returns the outcomes in their order. The route checks the permission for
    /// the action; the one for each job is checked here.
    pub async fn run_bulk(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        BulkRequest { action, ids, drain, idempotency_key: key }: BulkRequest,
    ) -> Result<Vec<BulkItemOutcome>, ServiceError> {
        let terms = &DrainTerms::try_from(drain)?;
        let key = key.as_deref();
        let mut unique = BTreeSet::new();
        let ids: Vec<&String> = ids.iter().filter(|id| unique.insert(*id)).collect();
        if ids.len() > MAX_BULK_IDS {
            return Err(InvalidInput::TooMuch { items: LimitedItems::Ids, limit: MAX_BULK_IDS as u64 }.into());
        }
        let outcomes = ids.into_iter().map(|id| {
            let caller = caller.clone();
            async move { (id.clone(), self.run_bulk_item(caller, principal, (action, terms), id, key).await) }
        });
        Ok(join_all(outcomes).await)
    }

    async fn run_bulk_item(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        (action, terms): (BulkAction, &DrainTerms),
        id: &str,
        key: Option<&str>,
    ) -> Result<BulkItemEffect, ServiceError> {
        let worker = || WorkerId::parse(id).map_err(|_| ServiceError::InvalidId(IdKind::Worker));
        let job = async || {
            let job = JobId::parse(id).map_err(|_| ServiceError::InvalidId(IdKind::Job))?;
            self.access.authorize(principal, bulk_requirement(action), Some(&job)).await?;
            Ok::<_, ServiceError>(job)
        };
        let changed = match action {
            BulkAction::Drain => self.drain_if_needed(caller, worker()?, terms.clone()).await?,
            BulkAction::Resume => self.workers.resume_worker(caller, worker()?).await?,
            BulkAction::Delete => self.workers.delete_worker(caller, worker()?).await.map(|()| true)?,
            BulkAction::Cancel => self.jobs.cancel(caller, job().await?).await?,
            BulkAction::Retry => {
                let job = job().await?;
                // A key belongs to one submit.
                let key = key.map(|key| format!("{key}/{id}"));
                return Ok(BulkItemEffect::Retried(self.jobs.retry(caller, job, RetryJob::default(), key).await?.id));
            }
        };
        Ok(if changed { BulkItemEffect::Done } else { BulkItemEffect::Unchanged })
    }

    /// Drains a worker, unless it drains already: then its reason and deadline stay. Returns whether it changed.
    async fn drain_if_needed(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        terms: DrainTerms,
    ) -> Result<bool, ServiceError> {
        self.context
            .change(caller, move |unit| {
                let (id, terms) = (id.clone(), terms.clone());
                Box::pin(async move {
                    let before = unit.worker(&id).await?.worker;
                    if before.drain.is_some() {
                        return Ok(false);
                    }
                    drain_in(unit, &before, terms).await?;
                    Ok(true)
                })
            })
            .await
    }
}
