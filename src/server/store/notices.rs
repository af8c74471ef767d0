//! What people should know of their accounts, and from where they log in.

use app::domain::ids::{SessionId, UserId};
use app::domain::notice::NoticeKind;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotice {
    /// Whose account it is about.
    pub user: UserId,
    /// What happened.
    pub kind: NoticeKind,
    /// From which host; empty where that is not known.
    pub host: String,
    /// With which browser; empty where that is not known.
    pub agent: String,
    /// Who did it, as the audit trail names them.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// The session that began.
    pub session: Option<SessionId>,
}

/// Notices.
#[async_trait]
pub trait Notices {
    /// Somebody's, the newest first.
    async fn notices(&mut self, user: &UserId) -> Result<Vec<StoredNotice>>;
    /// Adds one; it takes the place of an earlier one of its kind from the same host and browser. Of each person the
    /// newest `most` are kept.
    async fn add_notice(&mut self, notice: &StoredNotice, most: u32) -> Result<()>;
    /// Removes somebody's up to this moment.
    async fn clear_notices(&mut self, user: &UserId, until: Timestamp) -> Result<()>;
    /// The networks from which somebody has logged in.
    async fn login_networks(&mut self, user: &UserId) -> Result<Vec<String>>;
    /// Writes down that somebody has logged in from this network; those that were not used since `forget` are forgotten.
    async fn note_login_network(
        &mut self,
        user: &UserId,
        network: &str,
        at: Timestamp,
        forget: Timestamp,
    ) -> Result<()>;
}
