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
use super::unit::Caller;
use crate::tokens;

impl Core {
    /// The worker that stands for this machine, made if it is not there; returns its token.
    ///
    /// The token is derived from the server's key: an agent that outlived its server comes back to the next one.
    pub async fn local_worker(self: &Arc<Self>, name: &str) -> Result<String, Refusal> {
        let token = tokens::local_token(&self.job_token_key, name);
        let made = Worker::made(WorkerId::new(self.now(), self.entropy()), name.to_owned(), self.now());
        let worker = Worker { kind: Some(Kind::Persistent), local: true, ..made };
        let input = Arc::new((worker, Credential::of(tokens::digest(&token))));
        self.change(Caller::system(), move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (worker, credential) = &*input;
                let named = unit.tx.workers().await?.into_iter().find(|stored| stored.worker.name == worker.name);
                match named {
                    Some(stored) if stored.worker.local => {
                        unit.tx.put_credential(&stored.worker.id, credential).await?;
                    }
                    Some(_) => return Err(Refusal::NameTaken(worker.name.clone())),
                    None => {
                        unit.tx.insert_worker(worker, credential).await?;
                        let detail = json!({"name": worker.name, "local": true});
                        unit.record(Action::WorkerCreated, worker.id.as_str(), &detail).await?;
                        unit.touch(Topic::Workers);
                    }
                }
                Ok(())
            })
        })
        .await?;
        Ok(token)
    }
}
