//! Second factors of people.

use app::domain::ids::UserId;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;
use crate::vault::Sealed;

/// Somebody's authenticator app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTotp {
    /// Whose.
    pub user: UserId,
    /// The key that the app has.
    pub sealed: Sealed,
    /// When it was begun to be set up.
    pub created_at: Timestamp,
    /// When its first code was entered; none while it is being set up.
    pub confirmed_at: Option<Timestamp>,
    /// The time step of the last code that was used.
    pub last_step: Option<i64>,
}

/// A recovery code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCode {
    /// Its SHA-256, in hex.
    pub digest: String,
    /// When it was used.
    pub used_at: Option<Timestamp>,
}

/// Second factors.
#[async_trait]
pub trait Factors {
    /// Somebody's authenticator app, also one that is being set up.
    async fn totp(&mut self, user: &UserId) -> Result<Option<StoredTotp>>;
    /// Sets it, in place of another.
    async fn put_totp(&mut self, totp: &StoredTotp) -> Result<()>;
    /// Removes it.
    async fn delete_totp(&mut self, user: &UserId) -> Result<()>;
    /// Who has an authenticator app that is set up, or a passkey.
    async fn with_factors(&mut self) -> Result<Vec<UserId>>;
    /// Removes somebody's authenticator app, passkeys and recovery codes.
    async fn delete_factors(&mut self, user: &UserId) -> Result<()>;
    /// Somebody's recovery codes, also used ones.
    async fn recovery_codes(&mut self, user: &UserId) -> Result<Vec<StoredCode>>;
    /// Replaces all of them, by the SHA-256 of each.
    async fn put_recovery_codes(&mut self, user: &UserId, digests: &[String]) -> Result<()>;
    /// Uses one up. [`super::StoreError::Conflict`] if there is none, or it was used.
    async fn use_recovery_code(&mut self, user: &UserId, digest: &str, at: Timestamp) -> Result<()>;
}
