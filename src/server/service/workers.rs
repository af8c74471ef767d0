//! What administrators do with workers.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::worker::{Kind, Link, Worker};
use app::protocol::status::WorkerType;
use app::protocol::topic::Topic;
use app::protocol::workers::CreateWorker;
use serde_json::json;

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::unit::Caller;
use crate::store::StoreError;
use crate::tokens;

/// The longest name of a worker, in characters.
const MAX_NAME: usize = 64;
/// The longest reason of a drain, in characters.
const MAX_REASON: usize = 500;

/// A new worker and its token, which is told this once.
#[derive(Debug, Clone)]
pub struct Created {
    /// The worker.
    pub worker: Worker,
    /// Its token.
    pub token: String,
}

impl Core {
    /// Makes a worker and its token.
    pub async fn create_worker(self: &Arc<Self>, caller: Caller, create: CreateWorker) -> Result<Created, Refusal> {
        let name = checked_name(&create.name)?;
        create.labels.validate()?;
        let worker = Worker {
            id: WorkerId::new(self.now(), self.entropy()),
            name,
            kind: create.worker_type.map(kind),
            labels: create.labels,
            created_at: self.now(),
            link: Link::NeverSeen,
            drain: None,
            spent: None,
            local: false,
        };
        let created = Created { worker, token: tokens::mint("wt_", &*self.random) };
        self.change(caller, move |unit| {
            let created = created.clone();
            Box::pin(async move {
                let worker = &created.worker;
                match unit.tx.insert_worker(worker, &tokens::digest(&created.token)).await {
                    Err(StoreError::Conflict) => return Err(Refusal::NameTaken(worker.name.clone())),
                    other => other?,
                }
                unit.record(Action::WorkerCreated, worker.id.as_str(), &json!({"name": worker.name})).await?;
                unit.touch(Topic::Workers);
                Ok(created)
            })
        })
        .await
    }

    /// Gives a worker a new token. The old one opens nothing any more, and streams that it opened end.
    pub async fn rotate_token(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<Created, Refusal> {
        let input = Arc::new((id.clone(), tokens::mint("wt_", &*self.random)));
        let rotated = self
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (id, token) = &*input;
                    let worker = unit.worker(id).await?.worker;
                    unit.tx.put_worker_token(id, &tokens::digest(token)).await?;
                    unit.record(Action::WorkerTokenRotated, id.as_str(), &json!({})).await?;
                    unit.touch(Topic::Workers);
                    Ok(Created { worker, token: token.clone() })
                })
            })
            .await?;
        self.hub.end_streams(&id);
        Ok(rotated)
    }

    /// Wishes that a worker finish what it has and take nothing new.
    pub async fn drain_worker(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        reason: Option<String>,
    ) -> Result<Worker, Refusal> {
        let reason = reason.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if reason.as_ref().is_some_and(|text| text.chars().count() > MAX_REASON) {
            return Err(Invalid::TooMuch { what: "characters of a reason", limit: MAX_REASON as u64 }.into());
        }
        self.change(caller, move |unit| {
            let (id, reason) = (id.clone(), reason.clone());
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                let detail = json!({"reason": reason});
                let after = before.clone().drained(unit.now, reason);
                unit.save_worker(&before, &after, Action::WorkerDrained, &detail).await?;
                Ok(after)
            })
        })
        .await
    }

    /// Takes the wish back.
    pub async fn resume_worker(self: &Arc<Self>, caller: Caller, id: WorkerId) -> Result<Worker, Refusal> {
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                let after = before.clone().resumed();
                unit.save_worker(&before, &after, Action::WorkerResumed, &json!({})).await?;
                super::dispatch::plan(unit).await?;
                Ok(after)
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
                let held = unit.tx.leased_jobs(Some(&id)).await?;
                unit.tx.delete_worker(&id).await?;
                unit.record(Action::WorkerDeleted, id.as_str(), &json!({"name": worker.name})).await?;
                for job in held {
                    let after = job.clone().lost(unit.now, app::domain::job::Loss::WorkerOffline);
                    unit.save_job(&job, &after).await?;
                }
                unit.touch(Topic::Workers);
                unit.touch(Topic::Worker(id));
                Ok(())
            })
        })
        .await?;
        self.presence.forget(&removed);
        Ok(())
    }
}

/// A name without surrounding blanks, if it is usable.
pub fn checked_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    let usable = !name.is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(char::is_control);
    if usable { Ok(name.to_owned()) } else { Err(Invalid::Name(name.chars().take(40).collect()).into()) }
}

fn kind(word: WorkerType) -> Kind {
    match word {
        WorkerType::Ephemeral => Kind::Ephemeral,
        WorkerType::Persistent => Kind::Persistent,
    }
}
