//! Who may come in: API tokens, browser sessions, and the server's own secrets.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A browser's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// SHA-256 of the cookie, in hex.
    pub digest: String,
    /// The name of the API token that opened it.
    pub name: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Access.
#[async_trait]
pub trait Access {
    /// The name of an admin API token, by the token's SHA-256.
    async fn api_token(&mut self, digest: &str) -> Result<Option<String>>;
    /// Whether there is any admin API token.
    async fn has_api_tokens(&mut self) -> Result<bool>;
    /// Adds a token, or gives the token of this name a new value.
    async fn put_api_token(&mut self, name: &str, digest: &str, at: Timestamp) -> Result<()>;
    /// A session, by the SHA-256 of its cookie.
    async fn session(&mut self, digest: &str) -> Result<Option<StoredSession>>;
    /// Opens one.
    async fn insert_session(&mut self, session: &StoredSession) -> Result<()>;
    /// Ends one.
    async fn delete_session(&mut self, digest: &str) -> Result<()>;
    /// Removes those that ended before `now`.
    async fn sweep_sessions(&mut self, now: Timestamp) -> Result<()>;
    /// One of the server's own settings.
    async fn setting(&mut self, key: &str) -> Result<Option<String>>;
    /// Writes or removes a setting.
    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()>;
}
