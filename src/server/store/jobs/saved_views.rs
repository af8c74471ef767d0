//! Saved views of the list of jobs.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredView {
    /// Who saved it.
    pub owner: String,
    pub name: String,
    /// A query string.
    pub query: String,
    /// Whether all users see it.
    pub shared: bool,
    pub saved_at: Timestamp,
}

#[async_trait]
pub trait SavedViewQueries {
    /// The views of this user and the shared ones, by name.
    async fn saved_views(&mut self, owner: &str) -> Result<Vec<StoredView>>;
    /// Inserts or replaces a view.
    async fn save_view(&mut self, view: &StoredView) -> Result<()>;
    /// Deletes a view. [`crate::store::StoreError::Conflict`] if it does not exist.
    async fn delete_view(&mut self, owner: &str, name: &str) -> Result<()>;
}
