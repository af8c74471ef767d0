//! What an authenticated caller is granted, and whether it still is.

use app::domain::access::Permissions;
use app::domain::ids::UserId;
use app::domain::time::{Millis, Timestamp};

use super::error::ServiceError;
use crate::store::Tx;
use crate::store::access::{ResolvedCredential, StoredSession};

/// What a request presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Token(String),
    Cookie(String),
}

impl Credential {
    /// Resolves the credential; `None` if it was revoked.
    pub(super) async fn resolve(&self, tx: &mut dyn Tx) -> Result<Option<ResolvedCredential>, ServiceError> {
        Ok(match self {
            Self::Token(digest) => tx.resolve_token(digest).await?,
            Self::Cookie(digest) => tx.resolve_cookie(digest).await?,
        })
    }
}

/// An authenticated caller's user, credential and permissions, as of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthGrant {
    pub(super) credential: Credential,
    pub(super) user: UserId,
    pub(super) permissions: Permissions,
}

impl AuthGrant {
    /// The permissions at the time of the request.
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// Returns whether the caller would still get the same permissions. `idle` is the idle timeout of sessions.
    pub async fn is_valid(&self, tx: &mut dyn Tx, now: Timestamp, idle: Millis) -> Result<bool, ServiceError> {
        let resolved = self.credential.resolve(tx).await?;
        Ok(resolved.and_then(|resolved| effective_permissions(&resolved, now, idle)) == Some(self.permissions))
    }
}

/// Returns the current permissions of a credential; `None` if it is no longer valid.
pub(super) fn effective_permissions(
    resolved: &ResolvedCredential,
    now: Timestamp,
    idle: Millis,
) -> Option<Permissions> {
    let is_expired = |session: &StoredSession| session.expires_at <= now || session.last_used_at + idle <= now;
    let is_token_expired = resolved.token.as_ref().and_then(|token| token.expires_at).is_some_and(|end| end <= now);
    if resolved.user.disabled_at.is_some() || is_token_expired || resolved.session.as_deref().is_some_and(is_expired) {
        return None;
    }
    let scopes = resolved.token.as_ref().and_then(|token| token.scopes);
    let role = resolved.user.role.permissions();
    Some(scopes.map_or(role, |scopes| role.intersection(scopes)))
}
