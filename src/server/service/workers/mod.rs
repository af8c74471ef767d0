//! Administration of workers.

pub mod gpu_readings;
pub(in crate::service) mod gpu_views;
pub(in crate::service) mod history;
pub mod list;
pub mod liveness;
pub mod local;
mod redaction;
pub mod token_conflict;
pub mod tokens;
pub mod views;

use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::job::AttemptLoss;
use app::domain::labels::Labels;
use app::domain::network::{MAX_NETWORKS, Network, NetworkParseError};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::WorkerCredential;
use app::domain::worker::{OfflineCause, Worker, WorkerEdit, WorkerKind};
use app::protocol::status::WorkerType;
use app::protocol::topic::Topic;
use app::protocol::workers::{CreateWorker, DrainWorker, EditWorker};
use serde_json::json;
use sha2::{Digest, Sha256};

use self::gpu_readings::GpuReadings;
use self::liveness::offline_at;
use self::token_conflict::TakeoverTracker;
use super::error::{InvalidField, InvalidInput, ServiceError, require_valid};
use super::names::checked_name;
use super::unit_of_work::{Caller, UnitOfWork};
use crate::service::ServiceContext;
use crate::service::audit::AuditService;
use crate::store::StoreError;
use crate::tokens::hex;

/// The maximum length of a drain's reason, in characters.
const MAX_REASON: usize = 500;
/// The maximum drain deadline, in seconds: 30 days.
const MAX_DEADLINE_SECONDS: u32 = 2_592_000;

/// Validated reason and deadline of a drain.
#[derive(Debug, Clone)]
pub struct DrainTerms {
    reason: Option<String>,
    deadline: Option<Millis>,
}

impl TryFrom<DrainWorker> for DrainTerms {
    type Error = ServiceError;

    fn try_from(DrainWorker { reason, deadline_seconds }: DrainWorker) -> Result<Self, ServiceError> {
        let reason = reason.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if reason.as_ref().is_some_and(|text| text.chars().count() > MAX_REASON) {
            return Err(
                InvalidInput::TooMuch { items: LimitedItems::ReasonCharacters, limit: MAX_REASON as u64 }.into()
            );
        }
        if deadline_seconds.is_some_and(|seconds| seconds > MAX_DEADLINE_SECONDS) {
            let allowed = AllowedValues::Seconds { days: 30 };
            return Err(InvalidInput::OutOfRange { field: "deadline_seconds", allowed }.into());
        }
        Ok(Self { reason, deadline: deadline_seconds.map(|seconds| Millis::from_secs(i64::from(seconds))) })
    }
}

/// A new worker and its token, which is shown once.
#[derive(Debug, Clone)]
pub struct WorkerWithToken {
    pub worker: Worker,
    pub token: String,
    /// When the token expires unless an agent registers with it.
    pub unused_expires_at: Option<Timestamp>,
}

/// Workers, as users see and change them.
pub struct WorkerService {
    pub(super) readings: Arc<GpuReadings>,
    pub(super) takeovers: Arc<TakeoverTracker>,
    pub(super) audit: Arc<AuditService>,
    pub(super) context: Arc<ServiceContext>,
}

impl WorkerService {
    /// Creates a worker and its token.
    pub async fn create_worker(
        self: &Arc<Self>,
        caller: Caller,
        create: CreateWorker,
    ) -> Result<WorkerWithToken, ServiceError> {
        require_valid(self.invalid_worker_fields(&create))?;
        let name = checked_name(&create.name)?;
        let worker = Worker::new(WorkerId::new(self.context.now(), self.context.entropy()), name, self.context.now());
        let worker = Worker {
            kind: create.worker_type.map(worker_kind),
            labels: create.labels,
            ignores_reported_labels: create.ignore_reported_labels,
            allows_older_agents: !create.reject_older_agents,
            networks: checked_networks(&create.allowed_networks)?,
            ..worker
        };
        let created = WorkerWithToken {
            worker,
            token: crate::tokens::generate("wt_", &*self.context.random),
            unused_expires_at: self.unused_token_expiry(create.lifetime),
        };
        let expires_at = self.worker_token_expiry(create.lifetime)?;
        let issued = WorkerCredential::issued(crate::tokens::digest(&created.token), self.context.now(), &caller.actor);
        let credential = WorkerCredential { expires_at, expires_unused_at: created.unused_expires_at, ..issued };
        self.context
            .change(caller, move |unit| {
                let (created, credential) = (created.clone(), credential.clone());
                Box::pin(async move {
                    let worker = &created.worker;
                    match unit.tx.insert_worker(worker, &credential).await {
                        Err(StoreError::Conflict) => return Err(ServiceError::NameTaken(worker.name.clone())),
                        other => other?,
                    }
                    let detail = json!({
                        "name": worker.name,
                        "token_expires_at": credential.expires_at,
                        "token_unused_ends_at": credential.expires_unused_at,
                        "allowed_networks": network_texts(&worker.networks),
                    });
                    unit.record(AuditAction::WorkerCreated, worker.id.as_str(), &detail).await?;
                    unit.notify(Topic::Workers);
                    Ok(created)
                })
            })
            .await
    }

    /// Returns the invalid fields of a new worker.
    pub fn invalid_worker_fields(&self, create: &CreateWorker) -> Vec<InvalidField> {
        let CreateWorker { name, labels, allowed_networks, lifetime, .. } = create;
        let mut invalid_fields = invalid_settings(Some(name), Some(labels), Some(allowed_networks));
        let field = if lifetime.expires_at.is_some() { "expires_at" } else { "expires_in_seconds" };
        invalid_fields
            .extend(self.worker_token_expiry(*lifetime).err().map(|invalid| InvalidField::new(field, invalid)));
        invalid_fields
    }

    /// Drains a worker: it finishes its jobs and gets no new ones.
    pub async fn drain_worker(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        drain: DrainWorker,
    ) -> Result<Worker, ServiceError> {
        let terms = DrainTerms::try_from(drain)?;
        self.context
            .change(caller, move |unit| {
                let (id, terms) = (id.clone(), terms.clone());
                Box::pin(async move {
                    let before = unit.worker(&id).await?.worker;
                    drain_in(unit, &before, terms).await
                })
            })
            .await
    }

    /// Changes a worker's name, type, labels or networks, or dismisses an alert, and plans. Fails unless the worker is
    /// at one of the expected revisions.
    pub async fn edit_worker(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        edit: EditWorker,
        expected_revisions: Option<Vec<String>>,
    ) -> Result<Worker, ServiceError> {
        require_valid(invalid_edit_fields(&edit))?;
        let name = edit.name.as_deref().map(checked_name).transpose()?;
        let edit = WorkerEdit {
            name,
            kind: edit.worker_type.map(worker_kind),
            labels: edit.labels,
            ignores_reported_labels: edit.ignore_reported_labels,
            allows_older_agents: edit.reject_older_agents.map(|reject| !reject),
            networks: edit.allowed_networks.as_deref().map(checked_networks).transpose()?,
            resolves_conflict: edit.settle_token_conflict,
        };
        self.context
            .change(caller, move |unit| {
                let (id, edit, expected_revisions) = (id.clone(), edit.clone(), expected_revisions.clone());
                Box::pin(async move {
                    let before = unit.worker(&id).await?.worker;
                    if expected_revisions
                        .is_some_and(|expected_revisions| !expected_revisions.contains(&revision(&before)))
                    {
                        return Err(ServiceError::PreconditionFailed);
                    }
                    let after = before.clone().edited(edit);
                    let detail = json!({
                        "name": after.name,
                        "type": after.kind.map(WorkerKind::as_str),
                        "labels": after.labels,
                        "ignore_reported_labels": after.ignores_reported_labels,
                        "reject_older_agents": !after.allows_older_agents,
                        "allowed_networks": network_texts(&after.networks),
                        "token_conflict_settled": before.token_conflict.is_some() && after.token_conflict.is_none(),
                    });
                    match unit.save_worker(&before, &after, AuditAction::WorkerEdited, &detail).await {
                        Err(ServiceError::Store(StoreError::Conflict)) if after.name != before.name => {
                            return Err(ServiceError::NameTaken(after.name));
                        }
                        other => other?,
                    }
                    unit.request_planning();
                    Ok(after)
                })
            })
            .await
    }

    /// Ends a drain; returns whether the worker was draining.
    pub async fn resume_worker(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<bool, ServiceError> {
        self.context
            .change(caller, move |unit| {
                let id = id.clone();
                Box::pin(async move {
                    let before = unit.worker(&id).await?.worker;
                    let after = before.clone().resumed();
                    unit.save_worker(&before, &after, AuditAction::WorkerResumed, &json!({})).await?;
                    unit.request_planning();
                    Ok(before != after)
                })
            })
            .await
    }

    /// Deletes a worker that is not connected, and is not expected to return to a running job. The history of its jobs
    /// stays.
    pub async fn delete_worker(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<(), ServiceError> {
        let removed = id.clone();
        self.context
            .change(caller, move |unit| {
                let id = id.clone();
                Box::pin(async move {
                    let stored = unit.worker(&id).await?;
                    let held = unit.tx.leased_jobs(Some(&id)).await?;
                    stored.worker.check_deletion(&held, offline_at(unit.context, &stored))?;
                    remove_worker(unit, &stored.worker, AuditAction::WorkerDeleted).await
                })
            })
            .await?;
        self.context.presence.forget(&removed);
        self.takeovers.forget(&removed);
        self.readings.forget(&removed);
        Ok(())
    }
}

/// Drains a worker, and withdraws its unanswered offers.
pub async fn drain_in(unit: &mut UnitOfWork<'_>, before: &Worker, terms: DrainTerms) -> Result<Worker, ServiceError> {
    let (reason, deadline) = (terms.reason, terms.deadline.map(|span| unit.now + span));
    let detail = json!({"reason": reason, "deadline": deadline});
    let after = before.clone().drained(unit.now, reason, deadline);
    unit.save_worker(before, &after, AuditAction::WorkerDrained, &detail).await?;
    withdraw_offers(unit, &before.id).await?;
    unit.request_planning();
    Ok(after)
}

/// Removes a worker with its leases.
pub async fn remove_worker(
    unit: &mut UnitOfWork<'_>,
    worker: &Worker,
    action: AuditAction,
) -> Result<(), ServiceError> {
    lose_leases(unit, &worker.id).await?;
    unit.tx.delete_worker(&worker.id).await?;
    unit.record(action, worker.id.as_str(), &json!({"name": worker.name})).await?;
    unit.notify(Topic::Workers);
    unit.notify(Topic::Worker(worker.id.clone()));
    Ok(())
}

/// Ends the leases of a worker that is offline or removed: offers are requeued, running attempts are lost.
pub async fn lose_leases(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<(), ServiceError> {
    withdraw_offers(unit, worker).await?;
    let stored = unit.tx.worker(worker).await?;
    let stored_worker = stored.as_ref().map(|stored| &stored.worker);
    let lease = unit.context.policy.worker_lease(stored_worker);
    // Only a worker that is offline has attempts to lose here.
    let cause = stored_worker.and_then(Worker::offline_cause).unwrap_or(OfflineCause::HeartbeatTimeout);
    for before in unit.tx.leased_jobs(Some(worker)).await? {
        let after = before.clone().lost(unit.now, AttemptLoss::WorkerOffline(cause), lease);
        unit.save_job(&before, &after).await?;
    }
    Ok(())
}

/// Withdraws a worker's unanswered offers.
pub async fn withdraw_offers(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<(), ServiceError> {
    for before in unit.tx.leased_jobs(Some(worker)).await? {
        let after = before.clone().offer_withdrawn(unit.now);
        unit.save_job(&before, &after).await?;
    }
    Ok(())
}

/// The revision of a worker's settings: it changes when a user changes any of them.
pub fn revision(worker: &Worker) -> String {
    let Worker {
        name,
        kind,
        labels,
        ignores_reported_labels: ignores_reported,
        allows_older_agents: allows_older,
        networks,
        drain,
        ..
    } = worker;
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let drained_since = drain.as_ref().map(|drain| drain.since);
    let settings =
        json!([name, kind.map(WorkerKind::as_str), labels, ignores_reported, allows_older, networks, drained_since]);
    hex(&Sha256::digest(settings.to_string())[..8])
}

/// Returns the invalid fields of an edit.
pub fn invalid_edit_fields(edit: &EditWorker) -> Vec<InvalidField> {
    invalid_settings(edit.name.as_deref(), edit.labels.as_ref(), edit.allowed_networks.as_deref())
}

/// Returns the invalid settings.
fn invalid_settings(name: Option<&str>, labels: Option<&Labels>, networks: Option<&[String]>) -> Vec<InvalidField> {
    let name = name.and_then(|name| checked_name(name).err()).map(|invalid| InvalidField::new("name", invalid));
    let labels = labels.and_then(|labels| labels.validate().err()).map(|error| InvalidField::new("labels", error));
    let networks = invalid_networks(networks.unwrap_or_default());
    let networks = networks.into_iter().map(|invalid| InvalidField::new("allowed_networks", invalid));
    name.into_iter().chain(labels).chain(networks).collect()
}

/// Returns the invalid ones of these networks.
fn invalid_networks(texts: &[String]) -> Vec<InvalidInput> {
    if texts.len() > MAX_NETWORKS {
        return vec![InvalidInput::TooMuch { items: LimitedItems::Networks, limit: MAX_NETWORKS as u64 }];
    }
    texts.iter().filter_map(|text| parse_network(text).err()).collect()
}

fn parse_network(text: &str) -> Result<Network, InvalidInput> {
    text.parse().map_err(|NetworkParseError(text)| InvalidInput::Network(text))
}

/// Parses networks.
fn checked_networks(texts: &[String]) -> Result<Vec<Network>, InvalidInput> {
    texts.iter().map(|text| parse_network(text)).collect()
}

fn network_texts(networks: &[Network]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

fn worker_kind(worker_type: WorkerType) -> WorkerKind {
    match worker_type {
        WorkerType::Ephemeral => WorkerKind::Ephemeral,
        WorkerType::Persistent => WorkerKind::Persistent,
    }
}
