//! Who is asking, people, their API tokens and sessions.

use serde::{Deserialize, Serialize};

use super::factors::FactorsView;
use super::fingerprint::Fingerprint;
use crate::domain::access::{Permissions, Role};
use crate::domain::ids::{SessionId, TokenId, UserId};
use crate::domain::time::Timestamp;

/// What the server knows of the caller: `GET /api/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The caller's name, for the page's corner.
    pub name: String,
    /// The API token that the caller came with, by which it can revoke itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    /// What the caller may do, with what it came with.
    pub permissions: Permissions,
    /// How many notices about the caller's account are unread (`GET /api/account/notices`).
    #[serde(default)]
    pub unread_notices: u64,
    /// Whether the server runs for one person on this machine, without accounts.
    pub single_user: bool,
    /// The server's version.
    pub server_version: String,
    /// The address under which this server was reached, for commands to copy: `http://host:8001`.
    pub base_url: String,
    /// What agents have to know of this server's key, where no authority vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// `POST /api/session/proof`: for a browser whose password was given too long ago.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProveSession {
    /// The password, or the API token that the session was opened with.
    pub password: String,
    /// A code of the authenticator app, or a recovery code. Required of people who have a second factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// `POST /api/admin/users`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateUser {
    /// The name to log in with: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What they are here.
    pub role: Role,
    /// A password of 12 characters or more; left out, they have none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// `PATCH /api/admin/users/{id}`; what is left out stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditUser {
    /// What they are from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether nothing of theirs opens anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// `POST /api/admin/users/{id}/password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResetPassword {
    /// The new password, of 12 characters or more.
    pub password: String,
}

/// The answer to [`ResetPassword`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PasswordReset {
    /// Always true; a refusal is a problem document.
    pub success: bool,
    /// How many of their sessions ended.
    pub sessions_ended: u64,
    /// How many of their API tokens were revoked.
    pub tokens_revoked: u64,
}

/// `POST /api/account/password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangePassword {
    /// The password until now.
    pub old: String,
    /// The new one, of 12 characters or more.
    pub new: String,
}

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserView {
    /// The id.
    pub id: UserId,
    /// The name.
    pub name: String,
    /// What they are here.
    pub role: Role,
    /// What they may do.
    pub permissions: Permissions,
    /// When they were added.
    pub created_at: Timestamp,
    /// Whether nothing of theirs opens anything.
    pub disabled: bool,
}

/// `GET /api/admin/users`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersQuery {
    /// Only people whose name has this in it, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only people who are this here and are let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Only people who are not let in, or only those who are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// At most so many; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/users`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersPage {
    /// Whoever is asked for, by name.
    pub users: Vec<ListedUser>,
    /// How many there are of each, of those whose name has what is asked for in it.
    pub counts: UserCounts,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Somebody in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedUser {
    /// Somebody.
    #[serde(flatten)]
    pub user: UserView,
    /// When a token or a browser of theirs was last used, a minute late at most; none if there is none that was.
    pub last_used_at: Option<Timestamp>,
    /// How many API tokens they have.
    pub tokens: u64,
    /// Whether they have a second factor.
    #[serde(default)]
    pub second_factor: bool,
}

/// People by role; those who are not let in apart.
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
    /// Not let in, whatever they are.
    pub disabled: u64,
}

impl UserCounts {
    /// Counts one more.
    pub const fn add(&mut self, user: &UserView) {
        *match user.role {
            _ if user.disabled => &mut self.disabled,
            Role::Viewer => &mut self.viewer,
            Role::Researcher => &mut self.researcher,
            Role::Lead => &mut self.lead,
            Role::Admin => &mut self.admin,
        } += 1;
    }

    /// How many there are of a role who are let in.
    pub const fn of(&self, role: Role) -> u64 {
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
    /// Somebody.
    #[serde(flatten)]
    pub user: UserView,
    /// Their API tokens.
    pub tokens: Vec<TokenView>,
    /// Their browsers.
    pub sessions: Vec<SessionEntry>,
    /// Their second factors.
    #[serde(default)]
    pub factors: FactorsView,
}

/// `POST /api/account/tokens`, and for somebody else `POST /api/admin/users/{id}/tokens`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateToken {
    /// What it is called: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What it is for; left out, all that its owner may do, now and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Permissions>,
    /// After how many days it expires; left out, after as many as the server is set to (90).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
    /// Whether it never expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_expires: bool,
}

/// The answer to [`CreateToken`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedToken {
    /// The token itself, shown this once.
    pub secret: String,
    /// What is kept of it.
    #[serde(flatten)]
    pub token: TokenView,
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenView {
    /// The id, by which it is revoked.
    pub id: TokenId,
    /// What its owner calls it.
    pub name: String,
    /// What it is for; null for all that its owner may do.
    pub scopes: Option<Permissions>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends; null for never.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, within a minute.
    pub last_used_at: Option<Timestamp>,
}

/// `GET /api/account/tokens`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokensPage {
    /// The caller's, oldest first.
    pub tokens: Vec<TokenView>,
}

/// A browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEntry {
    /// The id, by which it is ended.
    pub id: SessionId,
    /// Whether it is the one that asks.
    pub current: bool,
    /// The host that it is on.
    pub host: String,
    /// What the browser calls itself.
    pub agent: String,
    /// When it logged in.
    pub created_at: Timestamp,
    /// When it was last used, within a minute.
    pub seen_at: Timestamp,
    /// When it expires if it is not used.
    #[serde(default)]
    pub idle_ends_at: Timestamp,
    /// When it ends in any case.
    pub expires_at: Timestamp,
}

/// `GET /api/account/sessions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionsPage {
    /// The caller's, oldest first.
    pub sessions: Vec<SessionEntry>,
    /// A session ends after this long without use.
    #[serde(default)]
    pub idle_seconds: u64,
    /// A new session ends this long after the login.
    #[serde(default)]
    pub longest_seconds: u64,
}
