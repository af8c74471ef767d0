//! Second factors of users.

use app::domain::ids::UserId;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::vault::Sealed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTotp {
    pub user: UserId,
    /// The encrypted key of the app.
    pub sealed: Sealed,
    /// When its setup was started.
    pub created_at: Timestamp,
    /// When its first code was entered; `None` during the setup.
    pub confirmed_at: Option<Timestamp>,
    /// The time step of the last used code.
    pub last_step: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecoveryCode {
    /// Its SHA-256, in hex.
    pub digest: String,
    pub used_at: Option<Timestamp>,
}

#[async_trait]
pub trait FactorQueries {
    /// The authenticator app of a user, also during its setup.
    async fn totp(&mut self, user: &UserId) -> Result<Option<StoredTotp>>;
    /// Inserts or replaces it.
    async fn put_totp(&mut self, totp: &StoredTotp) -> Result<()>;
    async fn delete_totp(&mut self, user: &UserId) -> Result<()>;
    /// The users with an authenticator app whose setup is complete, or a passkey.
    async fn users_with_factors(&mut self) -> Result<Vec<UserId>>;
    /// Deletes a user's authenticator app, passkeys and recovery codes.
    async fn delete_factors(&mut self, user: &UserId) -> Result<()>;
    /// The recovery codes of a user, also used ones.
    async fn recovery_codes(&mut self, user: &UserId) -> Result<Vec<StoredRecoveryCode>>;
    /// Replaces all of them; stores the SHA-256 of each.
    async fn put_recovery_codes(&mut self, user: &UserId, digests: &[String]) -> Result<()>;
    /// Uses up a code. [`crate::store::StoreError::Conflict`] if it does not exist, or was used.
    async fn use_recovery_code(&mut self, user: &UserId, digest: &str, at: Timestamp) -> Result<()>;
}
