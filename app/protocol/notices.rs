//! What people should know of their accounts.

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
    /// When.
    pub at: Timestamp,
    /// From which host; empty where that is not known.
    pub host: String,
    /// With which browser; empty where that is not known.
    pub agent: String,
    /// Who did it, as the audit trail names them.
    pub actor: String,
    /// The session that began, while it lasts: `DELETE /api/account/sessions/{id}` ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// `GET /api/account/notices`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoticesPage {
    /// The unread ones, the newest first.
    pub notices: Vec<NoticeView>,
}

/// `POST /api/account/notices/read`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadNotices {
    /// Up to this moment: that of the newest one that was seen.
    pub until: Timestamp,
}
