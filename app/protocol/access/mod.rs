//! The current session, users, API tokens and sessions.

pub mod factors;
pub mod notices;

use serde::{Deserialize, Serialize};

use self::factors::FactorsView;
use crate::domain::access::{Permissions, Role};
use crate::domain::ids::{SessionId, TokenId, UserId};
use crate::domain::time::Timestamp;
use crate::protocol::system::fingerprint::Fingerprint;

/// `GET /api/session`: the caller and its permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The caller's display name.
    pub name: String,
    /// The API token that authenticated the request; with its ID, a token can revoke itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    /// The caller's permissions, limited by the credential used.
    pub permissions: Permissions,
    /// Number of unread notices about the caller's account (`GET /api/account/notices`).
    #[serde(default)]
    pub unread_notices: u64,
    /// Whether the server runs in single-user mode, without accounts.
    pub single_user: bool,
    /// The server's version.
    pub server_version: String,
    /// The base URL under which this server was reached, for commands to copy: `http://host:8001`.
    pub base_url: String,
    /// Fingerprint of this server's key, which agents must pin if no certificate authority signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// `POST /api/session/proof`: reauthentication of a browser session whose password was entered too long ago.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reauthenticate {
    /// The password, or the API token that the session was created with.
    pub password: String,
    /// A code of the authenticator app, or a recovery code. Required if the user has a second factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// `POST /api/admin/users`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateUser {
    /// The name to sign in with: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The user's role.
    pub role: Role,
    /// A password of at least 12 characters; if omitted, the user has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// `PATCH /api/admin/users/{id}`; omitted fields stay unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditUser {
    /// The new role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether the user is disabled: cannot sign in, and all tokens and sessions are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// `POST /api/admin/users/{id}/password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResetPassword {
    /// The new password, of at least 12 characters.
    pub password: String,
}

/// The answer to [`ResetPassword`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PasswordReset {
    /// Always true; an error is returned as a problem document.
    pub success: bool,
    /// Number of sessions that were ended.
    pub sessions_ended: u64,
    /// Number of API tokens that were revoked.
    pub tokens_revoked: u64,
}

/// `POST /api/account/password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangePassword {
    /// The current password.
    pub old: String,
    /// The new password, of at least 12 characters.
    pub new: String,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserView {
    /// The user's ID.
    pub id: UserId,
    /// The user's name.
    pub name: String,
    /// The user's role.
    pub role: Role,
    /// The permissions of that role.
    pub permissions: Permissions,
    /// When the user was created.
    pub created_at: Timestamp,
    /// Whether the user is disabled.
    pub disabled: bool,
}

/// Query string of `GET /api/admin/users`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersQuery {
    /// Filters by a part of the name, ignoring case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Filters by role; disabled users are excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Filters by disabled (`true`) or enabled (`false`) users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Maximum number of results; if omitted, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/users`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersPage {
    /// The matching users, by name.
    pub users: Vec<ListedUser>,
    /// Number of users of each role, among those whose name matches `q`.
    pub counts: UserCounts,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A user in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedUser {
    /// The user.
    #[serde(flatten)]
    pub user: UserView,
    /// When a token or session of the user was last used, accurate to one minute; none if never.
    pub last_used_at: Option<Timestamp>,
    /// Number of API tokens.
    pub tokens: u64,
    /// Whether the user has a second factor.
    #[serde(default)]
    pub second_factor: bool,
}

/// Number of enabled users by role, and number of disabled users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserCounts {
    /// `viewer`.
    pub viewer: u64,
    /// `researcher`.
    pub researcher: u64,
    /// `lead`.
    pub lead: u64,
    /// `admin`.
    pub admin: u64,
    /// Disabled users of any role.
    pub disabled: u64,
}

impl UserCounts {
    /// Counts a user.
    pub const fn add(&mut self, user: &UserView) {
        *match user.role {
            _ if user.disabled => &mut self.disabled,
            Role::Viewer => &mut self.viewer,
            Role::Researcher => &mut self.researcher,
            Role::Lead => &mut self.lead,
            Role::Admin => &mut self.admin,
        } += 1;
    }

    /// Number of enabled users with this role.
    pub const fn count(&self, role: Role) -> u64 {
        match role {
            Role::Viewer => self.viewer,
            Role::Researcher => self.researcher,
            Role::Lead => self.lead,
            Role::Admin => self.admin,
        }
    }
}

/// `GET /api/admin/users/{id}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserDetail {
    /// The user.
    #[serde(flatten)]
    pub user: UserView,
    /// The user's API tokens.
    pub tokens: Vec<TokenView>,
    /// The user's browser sessions.
    pub sessions: Vec<SessionEntry>,
    /// The user's second factors.
    #[serde(default)]
    pub factors: FactorsView,
}

/// `POST /api/account/tokens`, and `POST /api/admin/users/{id}/tokens` for another user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateToken {
    /// The token's name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The token's scopes; if omitted, it always has all permissions of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Permissions>,
    /// Number of days until the token expires; if omitted, the server's default (90).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
    /// Whether the token never expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_expires: bool,
}

/// The answer to [`CreateToken`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedToken {
    /// The token itself, shown only once.
    pub secret: String,
    /// The stored token.
    #[serde(flatten)]
    pub token: TokenView,
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenView {
    /// The token's ID, by which it is revoked.
    pub id: TokenId,
    /// The token's name.
    pub name: String,
    /// The token's scopes; null for all permissions of its owner.
    pub scopes: Option<Permissions>,
    /// When the token was created.
    pub created_at: Timestamp,
    /// When the token expires; null for never.
    pub expires_at: Option<Timestamp>,
    /// When the token was last used, accurate to one minute.
    pub last_used_at: Option<Timestamp>,
}

/// `GET /api/account/tokens`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokensPage {
    /// The caller's tokens, oldest first.
    pub tokens: Vec<TokenView>,
}

/// A browser session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEntry {
    /// The session's ID, by which it is ended.
    pub id: SessionId,
    /// Whether it is the session of this request.
    pub current: bool,
    /// The address of the client.
    pub host: String,
    /// The browser's user agent.
    pub agent: String,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the session was last used, accurate to one minute.
    pub seen_at: Timestamp,
    /// When the session expires if it is not used.
    #[serde(default)]
    pub idle_ends_at: Timestamp,
    /// When the session expires in any case.
    pub expires_at: Timestamp,
}

/// `GET /api/account/sessions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionsPage {
    /// The caller's sessions, oldest first.
    pub sessions: Vec<SessionEntry>,
    /// A session expires after this many seconds without use.
    #[serde(default)]
    pub idle_seconds: u64,
    /// A new session ends this long after the sign-in.
    #[serde(default)]
    pub longest_seconds: u64,
}
