//! API tokens for scripts, with scopes and expiry.

use std::sync::Arc;

use app::domain::access::{Permission, Permissions};
use app::domain::allowed_values::AllowedValues;
use app::domain::audit::AuditAction;
use app::domain::ids::{TokenId, UserId};
use app::domain::time::{Millis, Timestamp};
use app::protocol::access::{CreateToken, CreatedToken, SessionEntry, SessionsPage, TokenView};
use app::protocol::topic::Topic;
use serde_json::json;

use super::users::invalid_name_field;
use super::{AuthMethod, Principal};
use crate::service::access::AccessService;
use crate::service::error::{InvalidField, InvalidInput, ResourceLimit, ServiceError, require_valid};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::StoreError;
use crate::store::access::{StoredToken, StoredUser};
use crate::tokens;

/// The maximum lifetime of a token that expires, in days.
pub const MAX_TOKEN_DAYS: u32 = 3_660;

impl AccessService {
    pub async fn user_tokens(&self, user: &UserId) -> Result<Vec<TokenView>, ServiceError> {
        self.flush_last_used().await?;
        Ok(self.context.read().await?.api_tokens(user).await?.into_iter().map(token_view).collect())
    }

    pub async fn user_sessions(&self, principal: &Principal, user: &UserId) -> Result<Vec<SessionEntry>, ServiceError> {
        self.flush_last_used().await?;
        let sessions = self.context.read().await?.sessions(user).await?;
        let entry = |session: crate::store::access::StoredSession| SessionEntry {
            current: principal.via == AuthMethod::Session(session.id.clone()),
            id: session.id,
            host: session.host,
            agent: session.user_agent,
            created_at: session.created_at,
            seen_at: session.last_used_at,
            idle_ends_at: session.last_used_at + self.context.policy.accounts.session_idle,
            expires_at: session.expires_at,
        };
        Ok(sessions.into_iter().map(entry).collect())
    }

    /// Returns the caller's sessions and the lifetime of sessions.
    pub async fn sessions_page(&self, principal: &Principal) -> Result<SessionsPage, ServiceError> {
        let user = principal.account_id()?;
        let seconds = |span: Millis| (span.0 / 1_000).unsigned_abs();
        let accounts = &self.context.policy.accounts;
        Ok(SessionsPage {
            sessions: self.user_sessions(principal, &user).await?,
            idle_seconds: seconds(accounts.session_idle),
            longest_seconds: seconds(accounts.session_max_age),
        })
    }

    /// Returns the invalid fields of a request for a token.
    pub fn invalid_token_fields(&self, create: &CreateToken) -> Vec<InvalidField> {
        let end = self.token_expiry(create).err().map(|invalid| InvalidField::new("expires_in_days", invalid));
        invalid_name_field(&create.name).into_iter().chain(end).collect()
    }

    /// Returns when an API token that is created now expires.
    fn token_expiry(&self, create: &CreateToken) -> Result<Option<Timestamp>, InvalidInput> {
        let days = |days: u32| Some(self.context.now() + Millis::from_secs(i64::from(days) * 86_400));
        match (create.expires_in_days, create.never_expires) {
            (Some(chosen @ 1..=MAX_TOKEN_DAYS), false) => Ok(days(chosen)),
            (None, false) => Ok(Some(self.context.now() + self.context.policy.accounts.api_token_lifetime)),
            (None, true) => Ok(None),
            (Some(_), _) => {
                let allowed = AllowedValues::TokenDays { max: MAX_TOKEN_DAYS.into() };
                Err(InvalidInput::OutOfRange { field: "expires_in_days", allowed })
            }
        }
    }

    /// Creates a token for the caller; its secret is shown once. It has no more permissions than the credential that
    /// creates it, and expires no later.
    pub async fn create_token(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        create: CreateToken,
    ) -> Result<CreatedToken, ServiceError> {
        self.create_token_for(caller, principal, principal.account_id()?, create).await
    }

    /// Creates a token for another user. Requires all permissions, because jobs of such a token use its owner's private
    /// secrets.
    pub async fn create_token_for(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        user: UserId,
        create: CreateToken,
    ) -> Result<CreatedToken, ServiceError> {
        require_valid(self.invalid_token_fields(&create))?;
        let for_another = principal.user.as_ref() != Some(&user);
        if for_another
            && let Some(missing) =
                Permissions::all().iter().find(|permission| !principal.permissions.contains(*permission))
        {
            return Err(ServiceError::PermissionDenied(missing));
        }
        let expires_at = self.token_expiry(&create)?;
        if let Some(missing) = create
            .scopes
            .and_then(|scopes| scopes.iter().find(|permission| !principal.permissions.contains(*permission)))
        {
            return Err(ServiceError::PermissionDenied(missing));
        }
        let secret = tokens::generate("st_", &*self.context.random);
        let token = StoredToken {
            id: TokenId::new(self.context.now(), self.context.entropy()),
            user,
            name: create.name,
            scopes: create.scopes,
            created_at: self.context.now(),
            expires_at,
            used_at: None,
        };
        let shared = Arc::new((token, tokens::digest(&secret), principal.clone()));
        let token = self.context.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (token, digest, principal) = &*shared;
                let token = &match presented_token(unit, principal).await? {
                    Some(creator) => restricted_to_creator(token.clone(), &creator, principal),
                    None => token.clone(),
                };
                let owner =
                    unit.tx.user(&token.user).await?.ok_or_else(|| ServiceError::UserNotFound(token.user.clone()))?;
                check_token_limit(unit, &owner, &token.name).await?;
                // No more than its owner's permissions now: the token must not gain more when the owner is promoted.
                let scopes = token.scopes.map(|scopes| scopes.intersection(owner.role.permissions()));
                let token = &StoredToken { scopes, ..token.clone() };
                unit.tx.insert_api_token(token, digest).await?;
                let for_another = principal.user.as_ref() != Some(&token.user);
                let detail = json!({
                    "token": token.id,
                    "name": token.name,
                    "scopes": token.scopes,
                    "expires_at": token.expires_at,
                    "for_another": for_another,
                });
                unit.notify(Topic::Access(owner.id.clone()));
                unit.record(AuditAction::TokenCreated, &owner.name, &detail).await?;
                Ok(token.clone())
            })
        });
        Ok(CreatedToken { secret, token: token_view(token.await?) })
    }

    /// Revokes a token: the caller's own, one of a user with no more permissions, or the one in use.
    pub async fn revoke_token(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        id: TokenId,
    ) -> Result<(), ServiceError> {
        let principal = principal.clone();
        self.context
            .change(caller, move |unit| {
                let (principal, id) = (principal.clone(), id.clone());
                Box::pin(async move {
                    let is_presented = presented_token(unit, &principal).await?.is_some_and(|token| token.id == id);
                    if !is_presented && !principal.permissions.contains(Permission::AdminUsers) {
                        principal.require(Permission::AccountManage)?;
                    }
                    let token =
                        unit.tx.api_token(&id).await?.filter(|token| is_presented || principal.can_manage(&token.user));
                    let token = token.ok_or_else(|| ServiceError::TokenNotFound(id.clone()))?;
                    let owner = unit.tx.user(&token.user).await?.ok_or(StoreError::Conflict)?;
                    if principal.user.as_ref() != Some(&owner.id) {
                        unit.require_covered(owner.role.permissions())?;
                    }
                    revoke_in(unit, &owner, &token).await
                })
            })
            .await
    }
}

/// Revokes all API tokens of a user; returns their number.
pub(super) async fn revoke_tokens(unit: &mut UnitOfWork<'_>, user: &StoredUser) -> Result<u64, ServiceError> {
    let mut revoked = 0;
    for token in unit.tx.api_tokens(&user.id).await? {
        revoke_in(unit, user, &token).await?;
        revoked += 1;
    }
    Ok(revoked)
}

async fn revoke_in(unit: &mut UnitOfWork<'_>, owner: &StoredUser, token: &StoredToken) -> Result<(), ServiceError> {
    unit.tx.delete_api_token(&token.id).await?;
    unit.notify(Topic::Access(owner.id.clone()));
    unit.record(AuditAction::TokenRevoked, &owner.name, &json!({"token": token.id, "name": token.name})).await
}

/// Returns the caller's token, or the one that opened the caller's session.
async fn presented_token(
    unit: &mut UnitOfWork<'_>,
    principal: &Principal,
) -> Result<Option<StoredToken>, ServiceError> {
    let id = match &principal.via {
        AuthMethod::Token { id, .. } => Some(id.clone()),
        AuthMethod::Session(session) => unit.tx.session(session).await?.ok_or(ServiceError::NotAuthenticated)?.token,
        AuthMethod::Loopback | AuthMethod::Host => None,
    };
    let Some(id) = id else { return Ok(None) };
    unit.tx.api_token(&id).await?.map(Some).ok_or(ServiceError::NotAuthenticated)
}

/// Fails if the owner has a token of this name or the maximum number. At that limit, expired tokens are removed first.
async fn check_token_limit(unit: &mut UnitOfWork<'_>, owner: &StoredUser, name: &str) -> Result<(), ServiceError> {
    let mut tokens = unit.tx.api_tokens(&owner.id).await?;
    if tokens.iter().any(|token| token.name == name) {
        return Err(ServiceError::TokenExists(name.to_owned()));
    }
    let max = unit.context.policy.usage_limits.api_tokens_per_user;
    if tokens.len() >= max {
        let now = unit.now;
        for expired in tokens.extract_if(.., |token| token.expires_at.is_some_and(|end| end <= now)) {
            revoke_in(unit, owner, &expired).await?;
        }
    }
    if tokens.len() >= max { Err(ServiceError::LimitReached(ResourceLimit::ApiTokens { max })) } else { Ok(()) }
}

/// Restricts a token to the scopes and expiry of the one that creates it.
fn restricted_to_creator(token: StoredToken, creator: &StoredToken, principal: &Principal) -> StoredToken {
    let expires_at = [token.expires_at, creator.expires_at].into_iter().flatten().min();
    StoredToken { scopes: token.scopes.or(Some(principal.permissions)), expires_at, ..token }
}

fn token_view(token: StoredToken) -> TokenView {
    TokenView {
        id: token.id,
        name: token.name,
        scopes: token.scopes,
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: token.used_at,
    }
}
