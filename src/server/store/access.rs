//! Who may come in: people, their API tokens and browser sessions, and the server's own secrets.

use std::sync::Arc;

use app::domain::access::{Permissions, Role};
use app::domain::ids::{SessionId, TokenId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUser {
    /// The id.
    pub id: UserId,
    /// The name, under which they log in and stand in the audit trail.
    pub name: String,
    /// What they are here.
    pub role: Role,
    /// When they were added.
    pub created_at: Timestamp,
    /// Since when nothing of theirs opens anything.
    pub disabled_at: Option<Timestamp>,
    /// How many notices about their account they have not marked as read.
    pub unread_notices: u64,
}

/// What somebody has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Who.
    pub user: UserId,
    /// When a token or a session of theirs was last used, as far as it was written down.
    pub at: Option<Timestamp>,
    /// How many tokens they have.
    pub tokens: u64,
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// The id, by which it is revoked.
    pub id: TokenId,
    /// Whose it is.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// What it is for; none for all that its owner may do.
    pub scopes: Option<Permissions>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as far as it was written down.
    pub used_at: Option<Timestamp>,
}

/// A browser's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// The id, by which it is ended.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The API token that opened it, if one did.
    pub token: Option<TokenId>,
    /// The host that opened it.
    pub host: String,
    /// What the browser called itself.
    pub agent: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When its password, or the token that opened it, was last given.
    pub proved_at: Timestamp,
    /// When it was last used, as far as it was written down.
    pub seen_at: Timestamp,
    /// When it ends in any case.
    pub expires_at: Timestamp,
}

/// What a secret opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Whose it is.
    pub user: Arc<StoredUser>,
    /// The token that it is, or that opened the session.
    pub token: Option<Arc<StoredToken>>,
    /// The session that it is.
    pub session: Option<Arc<StoredSession>>,
}

/// When something was last used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Used {
    /// A token.
    Token(TokenId, Timestamp),
    /// A session.
    Session(SessionId, Timestamp),
}

/// Access.
#[async_trait]
pub trait Access {
    /// A person.
    async fn user(&mut self, id: &UserId) -> Result<Option<StoredUser>>;
    /// A person, by name.
    async fn user_by_name(&mut self, name: &str) -> Result<Option<StoredUser>>;
    /// Everybody, by name.
    async fn users(&mut self) -> Result<Vec<StoredUser>>;
    /// What everybody has used, of those who have a token or a session.
    async fn activity(&mut self) -> Result<Vec<Activity>>;
    /// Adds somebody. [`super::StoreError::Conflict`] if the name is taken.
    async fn insert_user(&mut self, user: &StoredUser) -> Result<()>;
    /// Changes somebody's role, or whether they are let in.
    async fn update_user(&mut self, user: &StoredUser) -> Result<()>;
    /// The hash of somebody's password.
    async fn password(&mut self, user: &UserId) -> Result<Option<String>>;
    /// Gives somebody another password.
    async fn put_password(&mut self, user: &UserId, hash: &str) -> Result<()>;

    /// What a token opens, by its SHA-256.
    async fn by_token(&mut self, digest: &str) -> Result<Option<Opened>>;
    /// What a cookie opens, by its SHA-256. A session that a token opened is gone with that.
    async fn by_cookie(&mut self, digest: &str) -> Result<Option<Opened>>;

    /// The tokens of somebody, oldest first.
    async fn api_tokens(&mut self, user: &UserId) -> Result<Vec<StoredToken>>;
    /// One of them.
    async fn api_token(&mut self, token: &TokenId) -> Result<Option<StoredToken>>;
    /// Adds a token. [`super::StoreError::Conflict`] if its owner has one of this name.
    async fn insert_api_token(&mut self, token: &StoredToken, digest: &str) -> Result<()>;
    /// Takes a token away, and the sessions that it opened.
    async fn delete_api_token(&mut self, token: &TokenId) -> Result<()>;

    /// The sessions of somebody, oldest first.
    async fn sessions(&mut self, user: &UserId) -> Result<Vec<StoredSession>>;
    /// One of them.
    async fn session(&mut self, session: &SessionId) -> Result<Option<StoredSession>>;
    /// Opens one, by the SHA-256 of its cookie.
    async fn insert_session(&mut self, session: &StoredSession, digest: &str) -> Result<()>;
    /// Writes down that its password was given once more.
    async fn prove_session(&mut self, session: &SessionId, at: Timestamp) -> Result<()>;
    /// Ends one.
    async fn delete_session(&mut self, session: &SessionId) -> Result<()>;
    /// Removes those that ended before `now`, or that nobody used since `idle_since`.
    async fn sweep_sessions(&mut self, now: Timestamp, idle_since: Timestamp) -> Result<()>;

    /// Writes down when tokens and sessions were last used.
    async fn note_used(&mut self, used: &[Used]) -> Result<()>;

    /// One of the server's own settings.
    async fn setting(&mut self, key: &str) -> Result<Option<String>>;
    /// Writes or removes a setting.
    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()>;
}
