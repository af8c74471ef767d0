//! What planning looks at.

use std::sync::Arc;

use app::domain::job::Job;
use async_trait::async_trait;

use super::Result;
use super::workers::StoredWorker;

/// Every worker, and every job that has not ended.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// By id.
    pub workers: Vec<Arc<StoredWorker>>,
    /// By id.
    pub jobs: Vec<Arc<Job>>,
}

/// Planning.
#[async_trait]
pub trait Planning {
    /// All that lives, shared: a writer knows it without reading it again.
    async fn live(&mut self) -> Result<Live>;
}
