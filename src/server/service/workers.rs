//! What administrators do with workers.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::job::Loss;
use app::domain::labels::Labels;
use app::domain::network::{BadNetwork, MAX_NETWORKS, Network};
use app::domain::text::is_plain;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::Credential;
use app::domain::worker::{Edit, Kind, Worker};
use app::protocol::status::WorkerType;
use app::protocol::topic::Topic;
use app::protocol::workers::{CreateWorker, DrainWorker, EditWorker};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use crate::store::StoreError;
use crate::tokens::{self, hex};

/// The longest name of a worker, in characters.
const MAX_NAME: usize = 64;
/// The longest reason of a drain, in characters.
const MAX_REASON: usize = 500;
/// The longest time a drain may give what still runs, in seconds: 30 days.
const LONGEST_DEADLINE: u32 = 2_592_000;

/// How a worker is to drain: checked words of whoever wishes it.
#[derive(Debug, Clone)]
pub struct Terms {
    reason: Option<String>,
    deadline: Option<Millis>,
}

impl TryFrom<DrainWorker> for Terms {
    type Error = Refusal;

    fn try_from(DrainWorker { reason, deadline_seconds }: DrainWorker) -> Result<Self, Refusal> {
        let reason = reason.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if reason.as_ref().is_some_and(|text| text.chars().count() > MAX_REASON) {
            return Err(Invalid::TooMuch { what: "characters of a reason", limit: MAX_REASON as u64 }.into());
        }
        if deadline_seconds.is_some_and(|seconds| seconds > LONGEST_DEADLINE) {
            return Err(Invalid::Range { field: "deadline_seconds", allowed: "at most 2592000 (30 days)" }.into());
        }
        Ok(Self { reason, deadline: deadline_seconds.map(|seconds| Millis::seconds(i64::from(seconds))) })
    }
}

/// A new worker and its token, which is told this once.
#[derive(Debug, Clone)]
pub struct Created {
    /// The worker.
    pub worker: Worker,
    /// Its token.
    pub token: String,
    /// When the token ends if no agent registers with it.
    pub unused_ends_at: Option<Timestamp>,
}

impl Core {
    /// Makes a worker and its token.
    pub async fn create_worker(self: &Arc<Self>, caller: Caller, create: CreateWorker) -> Result<Created, Refusal> {
        let name = checked_name(&create.name)?;
        create.labels.validate()?;
        let made = Worker::made(WorkerId::new(self.now(), self.entropy()), name, self.now());
        let worker = Worker {
            kind: create.worker_type.map(kind),
            labels: create.labels,
            ignores_reported: create.ignore_reported_labels,
            allows_older: !create.refuse_older_agents,
            networks: checked_networks(&create.allowed_networks)?,
            ..made
        };
        let created = Created {
            worker,
            token: tokens::mint("wt_", &*self.random),
            unused_ends_at: self.end_if_unused(create.life),
        };
        let expires_at = self.end_of(create.life)?;
        let fresh = Credential::made(tokens::digest(&created.token), self.now(), &caller.actor);
        let credential = Credential { expires_at, unused_ends_at: created.unused_ends_at, ..fresh };
        self.change(caller, move |unit| {
            let (created, credential) = (created.clone(), credential.clone());
            Box::pin(async move {
                let worker = &created.worker;
                match unit.tx.insert_worker(worker, &credential).await {
                    Err(StoreError::Conflict) => return Err(Refusal::NameTaken(worker.name.clone())),
                    other => other?,
                }
                let detail = json!({
                    "name": worker.name,
                    "token_expires_at": credential.expires_at,
                    "token_unused_ends_at": credential.unused_ends_at,
                    "allowed_networks": texts(&worker.networks),
                });
                unit.record(Action::WorkerCreated, worker.id.as_str(), &detail).await?;
                unit.touch(Topic::Workers);
                Ok(created)
            })
        })
        .await
    }

    /// Wishes that a worker finish what it has and take nothing new.
    pub async fn drain_worker(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        drain: DrainWorker,
    ) -> Result<Worker, Refusal> {
        let terms = Terms::try_from(drain)?;
        self.change(caller, move |unit| {
            let (id, terms) = (id.clone(), terms.clone());
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                drain_in(unit, &before, terms).await
            })
        })
        .await
    }

    /// Changes a worker's name, type, labels or networks, or settles an alarm, and looks who fits now. It must be as the
    /// caller has `seen` it: of one of these revisions.
    pub async fn edit_worker(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        edit: EditWorker,
        seen: Option<Vec<String>>,
    ) -> Result<Worker, Refusal> {
        let name = edit.name.as_deref().map(checked_name).transpose()?;
        edit.labels.as_ref().map(Labels::validate).transpose()?;
        let edit = Edit {
            name,
            kind: edit.worker_type.map(kind),
            labels: edit.labels,
            ignores_reported: edit.ignore_reported_labels,
            allows_older: edit.refuse_older_agents.map(|refuse| !refuse),
            networks: edit.allowed_networks.as_deref().map(checked_networks).transpose()?,
            conflict_is_settled: edit.settle_token_conflict,
        };
        self.change(caller, move |unit| {
            let (id, edit, seen) = (id.clone(), edit.clone(), seen.clone());
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                if seen.is_some_and(|seen| !seen.contains(&revision(&before))) {
                    return Err(Refusal::Changed);
                }
                let after = before.clone().edited(edit);
                let detail = json!({
                    "name": after.name,
                    "type": after.kind.map(Kind::as_str),
                    "labels": after.labels,
                    "ignore_reported_labels": after.ignores_reported,
                    "refuse_older_agents": !after.allows_older,
                    "allowed_networks": texts(&after.networks),
                    "token_conflict_settled": before.conflict.is_some() && after.conflict.is_none(),
                });
                match unit.save_worker(&before, &after, Action::WorkerEdited, &detail).await {
                    Err(Refusal::Store(StoreError::Conflict)) if after.name != before.name => {
                        return Err(Refusal::NameTaken(after.name));
                    }
                    other => other?,
                }
                unit.plan_after();
                Ok(after)
            })
        })
        .await
    }

    /// Takes the wish back; tells whether there was one.
    pub async fn resume_worker(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<bool, Refusal> {
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                let after = before.clone().resumed();
                unit.save_worker(&before, &after, Action::WorkerResumed, &json!({})).await?;
                unit.plan_after();
                Ok(before != after)
            })
        })
        .await
    }

    /// Removes a worker that is not connected. Its jobs' history stays.
    pub async fn delete_worker(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<(), Refusal> {
        let removed = id.clone();
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let worker = unit.worker(&id).await?.worker;
                worker.may_be_deleted()?;
                remove(unit, &worker, Action::WorkerDeleted).await
            })
        })
        .await?;
        self.presence.forget(&removed);
        self.contention.forget(&removed);
        self.readings.forget(&removed);
        Ok(())
    }
}

/// Wishes that a worker drain, and takes back what it has not answered.
pub async fn drain_in(unit: &mut Unit<'_>, before: &Worker, terms: Terms) -> Result<Worker, Refusal> {
    let (reason, deadline) = (terms.reason, terms.deadline.map(|span| unit.now + span));
    let detail = json!({"reason": reason, "deadline": deadline});
    let after = before.clone().drained(unit.now, reason, deadline);
    unit.save_worker(before, &after, Action::WorkerDrained, &detail).await?;
    withdraw_offers(unit, &before.id).await?;
    unit.plan_after();
    Ok(after)
}

/// Removes a worker, and gives up what it may still hold.
pub async fn remove(unit: &mut Unit<'_>, worker: &Worker, action: Action) -> Result<(), Refusal> {
    lose_leases(unit, &worker.id).await?;
    unit.tx.delete_worker(&worker.id).await?;
    unit.record(action, worker.id.as_str(), &json!({"name": worker.name})).await?;
    unit.touch(Topic::Workers);
    unit.touch(Topic::Worker(worker.id.clone()));
    Ok(())
}

/// A worker is gone: what it was offered goes back, what it ran is lost.
pub async fn lose_leases(unit: &mut Unit<'_>, worker: &WorkerId) -> Result<(), Refusal> {
    withdraw_offers(unit, worker).await?;
    let stored = unit.tx.worker(worker).await?;
    let lease = unit.core.lease_of(stored.as_ref().map(|stored| &stored.worker));
    for before in unit.tx.leased_jobs(Some(worker)).await? {
        let after = before.clone().lost(unit.now, Loss::WorkerOffline, lease);
        unit.save_job(&before, &after).await?;
    }
    Ok(())
}

/// Takes back what a worker was offered and has not answered.
pub async fn withdraw_offers(unit: &mut Unit<'_>, worker: &WorkerId) -> Result<(), Refusal> {
    for before in unit.tx.leased_jobs(Some(worker)).await? {
        let after = before.clone().offer_withdrawn(unit.now);
        unit.save_job(&before, &after).await?;
    }
    Ok(())
}

/// The name of what people have set of a worker: the same as long as nobody changes any of it.
pub fn revision(worker: &Worker) -> String {
    let Worker { name, kind, labels, ignores_reported, allows_older, networks, drain, .. } = worker;
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let drained = drain.as_ref().map(|drain| drain.since);
    let set = json!([name, kind.map(Kind::as_str), labels, ignores_reported, allows_older, networks, drained]);
    hex(&Sha256::digest(set.to_string())[..8])
}

/// A name without surrounding blanks, if it is usable.
pub fn checked_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    let usable = !name.is_empty() && is_plain(name, MAX_NAME);
    if usable { Ok(name.to_owned()) } else { Err(Invalid::Name(name.chars().take(40).collect()).into()) }
}

/// Networks as people write them, if they are usable.
fn checked_networks(texts: &[String]) -> Result<Vec<Network>, Refusal> {
    if texts.len() > MAX_NETWORKS {
        return Err(Invalid::TooMuch { what: "networks", limit: MAX_NETWORKS as u64 }.into());
    }
    let network = |text: &String| text.parse().map_err(|BadNetwork(text)| Invalid::Network(text).into());
    texts.iter().map(network).collect()
}

fn texts(networks: &[Network]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

fn kind(word: WorkerType) -> Kind {
    match word {
        WorkerType::Ephemeral => Kind::Ephemeral,
        WorkerType::Persistent => Kind::Persistent,
    }
}
