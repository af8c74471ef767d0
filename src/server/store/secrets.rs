//! Secrets for jobs, sealed.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;
use crate::vault::Sealed;

/// A secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Whose jobs are given it; empty for everybody's.
    pub owner: String,
    /// The variable that it fills.
    pub name: String,
    /// The value.
    pub sealed: Sealed,
    /// When it was set.
    pub updated_at: Timestamp,
    /// Who set it.
    pub updated_by: String,
    /// When a job was last given it.
    pub given_at: Option<Timestamp>,
}

/// Secrets.
#[async_trait]
pub trait Secrets {
    /// Those that the jobs of this owner are given, by name; one of their own stands after a shared one of its name.
    async fn secrets_for(&mut self, owner: &str) -> Result<Vec<StoredSecret>>;
    /// Sets one, new or in place of another.
    async fn put_secret(&mut self, secret: &StoredSecret) -> Result<()>;
    /// Removes one. [`super::StoreError::Conflict`] if it is not there.
    async fn delete_secret(&mut self, owner: &str, name: &str) -> Result<()>;
    /// Writes down that a job was given it.
    async fn note_given(&mut self, owner: &str, name: &str, at: Timestamp) -> Result<()>;
}
