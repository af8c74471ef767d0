//! Encrypted secrets of jobs.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;
use crate::vault::Sealed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// The user whose jobs get it; empty for shared ones.
    pub owner: String,
    /// The environment variable that it sets.
    pub name: String,
    /// The encrypted value.
    pub sealed: Sealed,
    pub updated_at: Timestamp,
    pub updated_by: String,
    /// When a job last got it.
    pub delivered_at: Option<Timestamp>,
}

#[async_trait]
pub trait SecretQueries {
    /// The secrets for jobs of this owner, by name; a user's own comes after the shared one of its name.
    async fn secrets_for(&mut self, owner: &str) -> Result<Vec<StoredSecret>>;
    /// Inserts or replaces a secret.
    async fn put_secret(&mut self, secret: &StoredSecret) -> Result<()>;
    /// Deletes a secret. [`super::StoreError::Conflict`] if it does not exist.
    async fn delete_secret(&mut self, owner: &str, name: &str) -> Result<()>;
    /// Records that a job got it.
    async fn record_delivery(&mut self, owner: &str, name: &str, at: Timestamp) -> Result<()>;
}
