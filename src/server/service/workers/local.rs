//! The server's own machine as a worker (`target: local`).

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::worker::credential::WorkerCredential;
use app::domain::worker::{Worker, WorkerKind};
use app::protocol::topic::Topic;
use serde_json::json;

use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::service::workers::WorkerService;
use crate::store::workers::StoredWorker;
use crate::tokens;

impl WorkerService {
    /// Returns the token of the worker for this machine; creates the worker if it does not exist.
    ///
    /// The token is derived from the server's key, so that an agent that outlived its server can register at the next
    /// one.
    pub async fn local_worker(self: &Arc<Self>, name: &str) -> Result<String, ServiceError> {
        let worker =
            Worker::new(WorkerId::new(self.context.now(), self.context.entropy()), name.to_owned(), self.context.now());
        let worker = Arc::new(Worker { kind: Some(WorkerKind::Persistent), local: true, ..worker });
        self.context
            .change(Caller::system(), move |unit| {
                let worker = Arc::clone(&worker);
                Box::pin(async move {
                    let existing =
                        unit.tx.workers().await?.into_iter().find(|stored| stored.worker.name == worker.name);
                    match existing {
                        Some(stored) if stored.worker.local => current_token(unit, &stored).await,
                        Some(_) => Err(ServiceError::NameTaken(worker.name.clone())),
                        None => {
                            let token = derive_token(unit, &worker.id).await?;
                            unit.tx.insert_worker(&worker, &WorkerCredential::new(tokens::digest(&token))).await?;
                            let detail = json!({"name": worker.name, "local": true});
                            unit.record(AuditAction::WorkerCreated, worker.id.as_str(), &detail).await?;
                            unit.notify(Topic::Workers);
                            Ok(token)
                        }
                    }
                })
            })
            .await
    }
}

/// Rotates the token of this machine's worker; its next agent gets the new one.
pub(in crate::service) async fn rotate_local_token(
    unit: &mut UnitOfWork<'_>,
    worker: &WorkerId,
    rotation: &str,
) -> Result<String, ServiceError> {
    unit.tx.put_setting(&rotation_setting(worker), Some(rotation)).await?;
    derive_token(unit, worker).await
}

/// Returns the worker's token. One that was derived from another key is no longer valid.
async fn current_token(unit: &mut UnitOfWork<'_>, stored: &StoredWorker) -> Result<String, ServiceError> {
    let id = &stored.worker.id;
    let token = derive_token(unit, id).await?;
    let digest = tokens::digest(&token);
    if stored.credential.digest != digest {
        unit.tx.put_credential(id, &WorkerCredential::new(digest)).await?;
        unit.record(AuditAction::WorkerTokenRotated, id.as_str(), &json!({"reason": "the server has another key"}))
            .await?;
    }
    Ok(token)
}

async fn derive_token(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<String, ServiceError> {
    let rotation = unit.tx.setting(&rotation_setting(worker)).await?.unwrap_or_default();
    Ok(tokens::local_token(&unit.context.token_signing_key, worker, &rotation))
}

/// The setting that changes with each rotation.
fn rotation_setting(worker: &WorkerId) -> String {
    format!("local_token_turn:{worker}")
}
