//! What planning looks at.

use std::sync::Arc;

use app::domain::job::{Job, State};
use app::domain::worker::Worker;
use async_trait::async_trait;

use super::Result;
use super::known::Known;
use super::workers::StoredWorker;

/// Every worker, and every job that has not ended.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// By id.
    pub workers: Vec<Arc<StoredWorker>>,
    /// By id.
    pub jobs: Vec<Arc<Job>>,
}

impl Live {
    /// The workers, as planning takes them.
    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().map(|stored| &stored.worker)
    }

    /// The jobs that wait, and those that hold a lease.
    pub fn waiting_and_leased(&self) -> (Vec<&Job>, Vec<&Job>) {
        self.jobs.iter().map(Arc::as_ref).partition(|job| matches!(job.state, State::Queued { .. }))
    }
}

/// What somebody does with all that lives.
pub type Look<'l> = dyn FnMut(&Known) + Send + 'l;

/// Planning.
#[async_trait]
pub trait Planning {
    /// All that lives, shared.
    async fn live(&mut self) -> Result<Live>;
    /// A look at all that lives, where it is: a writer knows it without reading it again.
    async fn look(&mut self, look: &mut Look<'_>) -> Result<()>;
}
