//! The orchestrator's own machine as a worker (`target: local`).

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::worker::credential::Credential;
use app::domain::worker::{Kind, Worker};
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::refusal::Refusal;
use super::unit::{Caller, Unit};
use crate::store::workers::StoredWorker;
use crate::tokens;

impl Core {
    /// The worker that stands for this machine, made if it is not there; returns its token.
    ///
    /// The token is derived from the server's key: an agent that outlived its server comes back to the next one.
    pub async fn local_worker(self: &Arc<Self>, name: &str) -> Result<String, Refusal> {
        let made = Worker::made(WorkerId::new(self.now(), self.entropy()), name.to_owned(), self.now());
        let worker = Arc::new(Worker { kind: Some(Kind::Persistent), local: true, ..made });
        self.change(Caller::system(), move |unit| {
            let worker = Arc::clone(&worker);
            Box::pin(async move {
                let named = unit.tx.workers().await?.into_iter().find(|stored| stored.worker.name == worker.name);
                match named {
                    Some(stored) if stored.worker.local => token_again(unit, &stored).await,
                    Some(_) => Err(Refusal::NameTaken(worker.name.clone())),
                    None => {
                        let token = token(unit, &worker.id).await?;
                        unit.tx.insert_worker(&worker, &Credential::of(tokens::digest(&token))).await?;
                        let detail = json!({"name": worker.name, "local": true});
                        unit.record(Action::WorkerCreated, worker.id.as_str(), &detail).await?;
                        unit.touch(Topic::Workers);
                        Ok(token)
                    }
                }
            })
        })
        .await
    }
}

/// Gives the worker of this machine another token, which its next agent is told.
pub(super) async fn turn_token(unit: &mut Unit<'_>, worker: &WorkerId, turn: &str) -> Result<String, Refusal> {
    unit.tx.put_setting(&turn_of(worker), Some(turn)).await?;
    token(unit, worker).await
}

/// The token that the worker has. One that was derived from another key opens nothing any more.
async fn token_again(unit: &mut Unit<'_>, stored: &StoredWorker) -> Result<String, Refusal> {
    let id = &stored.worker.id;
    let token = token(unit, id).await?;
    let digest = tokens::digest(&token);
    if stored.credential.digest != digest {
        unit.tx.put_credential(id, &Credential::of(digest)).await?;
        unit.record(Action::WorkerTokenRotated, id.as_str(), &json!({"reason": "the server has another key"})).await?;
    }
    Ok(token)
}

async fn token(unit: &mut Unit<'_>, worker: &WorkerId) -> Result<String, Refusal> {
    let turn = unit.tx.setting(&turn_of(worker)).await?.unwrap_or_default();
    Ok(tokens::local_token(&unit.core.job_token_key, worker, &turn))
}

/// The setting that changes with each rotation.
fn turn_of(worker: &WorkerId) -> String {
    format!("local_token_turn:{worker}")
}
