//! Notices: events of an account that its user should know about.

use serde::{Deserialize, Serialize};

use crate::domain::ids::SessionId;
use crate::domain::time::Timestamp;

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoticeView {
    /// `new_browser`, `new_network`, `wrong_code`, `wrong_passkey`, `passkey_copied`, `password_changed`, `password_reset`,
    /// `factor_added` and `factor_removed` (the authenticator app), `passkey_added`, `passkey_removed`, `factors_removed`,
    /// `recovery_codes_renewed` or `recovery_code_used`.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// The client's address; empty if unknown.
    pub host: String,
    /// The browser's user agent; empty if unknown.
    pub agent: String,
    /// Who did it, as in the audit log.
    pub actor: String,
    /// The new session, while it exists: `DELETE /api/account/sessions/{id}` ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// `GET /api/account/notices`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoticesPage {
    /// The unread notices, newest first.
    pub notices: Vec<NoticeView>,
}

/// `POST /api/account/notices/read`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadNotices {
    /// Marks notices as read up to this time: that of the newest one that was shown.
    pub until: Timestamp,
}
