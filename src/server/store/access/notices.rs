//! Notices to users about their accounts, and the networks from which they sign in.

use app::domain::ids::{SessionId, UserId};
use app::domain::notice::NoticeKind;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotice {
    pub user: UserId,
    /// What happened.
    pub kind: NoticeKind,
    /// The client's host; empty if unknown.
    pub host: String,
    /// The client's browser; empty if unknown.
    pub user_agent: String,
    /// The actor, as in the audit log.
    pub actor: String,
    pub at: Timestamp,
    /// The session that was opened.
    pub session: Option<SessionId>,
}

#[async_trait]
pub trait NoticeQueries {
    /// The notices of a user, newest first.
    async fn notices(&mut self, user: &UserId) -> Result<Vec<StoredNotice>>;
    /// Inserts a notice; replaces an earlier one of its kind from the same host and browser. The newest `max` of each
    /// user are kept.
    async fn add_notice(&mut self, notice: &StoredNotice, max: u32) -> Result<()>;
    /// Deletes a user's notices up to this time.
    async fn clear_notices(&mut self, user: &UserId, until: Timestamp) -> Result<()>;
    /// The networks from which a user has signed in.
    async fn login_networks(&mut self, user: &UserId) -> Result<Vec<String>>;
    /// Records a sign-in from this network; deletes networks that were not used since `forget_before`.
    async fn record_login_network(
        &mut self,
        user: &UserId,
        network: &str,
        at: Timestamp,
        forget_before: Timestamp,
    ) -> Result<()>;
}
