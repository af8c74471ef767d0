//! Access: users, their API tokens and browser sessions, and the server's own settings.

pub mod factors;
pub mod notices;
pub mod passkeys;

use std::sync::Arc;

use app::domain::access::{Permissions, Role};
use app::domain::ids::{SessionId, TokenId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUser {
    pub id: UserId,
    /// The sign-in name, also used in the audit log.
    pub name: String,
    /// The role.
    pub role: Role,
    pub created_at: Timestamp,
    /// Set while the user is disabled.
    pub disabled_at: Option<Timestamp>,
    /// The number of unread notices about the account.
    pub unread_notices: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserActivity {
    pub user: UserId,
    /// When a token or session of the user was last used, as last flushed.
    pub last_used_at: Option<Timestamp>,
    /// The number of their tokens.
    pub tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    pub id: TokenId,
    pub user: UserId,
    /// The name that the owner has given it.
    pub name: String,
    /// `None`: all permissions of its owner.
    pub scopes: Option<Permissions>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as last flushed.
    pub used_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    pub id: SessionId,
    pub user: UserId,
    /// The API token that opened it, if any.
    pub token: Option<TokenId>,
    pub host: String,
    pub user_agent: String,
    pub created_at: Timestamp,
    /// When its password, or the token that opened it, was last given.
    pub reauthenticated_at: Timestamp,
    /// When it was last used, as last flushed.
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What a token or cookie authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCredential {
    /// Its user.
    pub user: Arc<StoredUser>,
    /// The token, or the one that opened the session.
    pub token: Option<Arc<StoredToken>>,
    /// The session, if it is a cookie.
    pub session: Option<Arc<StoredSession>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastUsed {
    Token(TokenId, Timestamp),
    Session(SessionId, Timestamp),
}

#[async_trait]
pub trait AccessQueries {
    async fn user(&mut self, id: &UserId) -> Result<Option<StoredUser>>;
    async fn user_by_name(&mut self, name: &str) -> Result<Option<StoredUser>>;
    async fn users(&mut self) -> Result<Vec<StoredUser>>;
    /// Returns the activity of all users with a token or a session.
    async fn user_activity(&mut self) -> Result<Vec<UserActivity>>;
    /// Inserts a user. [`super::StoreError::Conflict`] if the name is taken.
    async fn insert_user(&mut self, user: &StoredUser) -> Result<()>;
    /// Updates the role and whether the user is disabled.
    async fn update_user(&mut self, user: &StoredUser) -> Result<()>;
    async fn password_hash(&mut self, user: &UserId) -> Result<Option<String>>;
    /// Sets the hash of the password.
    async fn put_password(&mut self, user: &UserId, hash: &str) -> Result<()>;

    /// Resolves a token by its SHA-256.
    async fn resolve_token(&mut self, digest: &str) -> Result<Option<ResolvedCredential>>;
    /// Resolves a cookie by its SHA-256. The session of a deleted token is deleted too.
    async fn resolve_cookie(&mut self, digest: &str) -> Result<Option<ResolvedCredential>>;

    async fn api_tokens(&mut self, user: &UserId) -> Result<Vec<StoredToken>>;
    async fn api_token(&mut self, token: &TokenId) -> Result<Option<StoredToken>>;
    /// Inserts a token. [`super::StoreError::Conflict`] if its owner has one of this name.
    async fn insert_api_token(&mut self, token: &StoredToken, digest: &str) -> Result<()>;
    /// Deletes a token and the sessions that it opened.
    async fn delete_api_token(&mut self, token: &TokenId) -> Result<()>;

    async fn sessions(&mut self, user: &UserId) -> Result<Vec<StoredSession>>;
    async fn session(&mut self, session: &SessionId) -> Result<Option<StoredSession>>;
    /// Inserts a session with the SHA-256 of its cookie.
    async fn insert_session(&mut self, session: &StoredSession, digest: &str) -> Result<()>;
    /// Records that its password was given again.
    async fn reauthenticate_session(&mut self, session: &SessionId, at: Timestamp) -> Result<()>;
    async fn delete_session(&mut self, session: &SessionId) -> Result<()>;
    /// Deletes sessions that expired before `now`, or were last used before `idle_since`.
    async fn sweep_sessions(&mut self, now: Timestamp, idle_since: Timestamp) -> Result<()>;

    /// Records when tokens and sessions were last used.
    async fn record_last_used(&mut self, used: &[LastUsed]) -> Result<()>;

    /// Returns one of the server's own settings.
    async fn setting(&mut self, key: &str) -> Result<Option<String>>;
    /// Writes or deletes a setting.
    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()>;
}
