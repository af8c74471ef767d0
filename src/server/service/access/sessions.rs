//! Sessions of a user: re-authentication and end.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::SessionId;
use app::domain::notice::NoticeKind;
use app::domain::passkey::PasskeyOrigin;
use app::domain::second_factor::AvailableFactors;
use app::protocol::topic::Topic;
use serde_json::json;

use super::factors::{has_factor, use_code};
use super::notices::{ChangeAuthor, add_change_notice};
use super::passkeys::{VerifiedPasskey, use_passkey};
use super::{AuthMethod, Principal};
use crate::service::access::AccessService;
use crate::service::error::{FactorError, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::access::StoredUser;
use crate::store::access::passkeys::ChallengePurpose;
use crate::tokens;

/// The proof for re-authentication.
#[derive(Debug, Default)]
pub struct ReauthProof {
    /// The password, or the API token that opened the session.
    pub secret: String,
    /// A code of the second factor.
    pub code: Option<String>,
    /// A passkey's signature.
    pub credential: Option<String>,
}

/// The second factor that was given.
enum GivenFactor {
    None,
    Code(String),
    Passkey(VerifiedPasskey),
}

impl AccessService {
    /// Re-authenticates a session with its password (and second factor, if the user has one), or with the token that
    /// opened it.
    pub async fn reauthenticate(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        proof: ReauthProof,
    ) -> Result<(), ServiceError> {
        let AuthMethod::Session(session) = principal.via.clone() else { return Ok(()) };
        let stored = self.context.read().await?.session(&session).await?.ok_or(ServiceError::NotAuthenticated)?;
        let is_correct = if let Some(token) = &stored.token {
            let resolved = self.context.read().await?.resolve_token(&tokens::digest(proof.secret.trim())).await?;
            resolved.and_then(|resolved| resolved.token).is_some_and(|presented| presented.id == *token)
        } else {
            let hash = self.context.read().await?.password_hash(&stored.user).await?;
            self.verify_password(hash, &proof.secret).await?
        };
        if !is_correct {
            return Err(ServiceError::WrongPassword);
        }
        let requires_factor =
            stored.token.is_none() && has_factor(&mut *self.context.read().await?, &stored.user).await?;
        let factor = match (proof.credential, proof.code) {
            _ if !requires_factor => GivenFactor::None,
            (Some(response), _) => GivenFactor::Passkey(
                self.verify_passkey(ChallengePurpose::Reauthentication, session.as_str(), &stored.user, &response)
                    .await?,
            ),
            (None, Some(code)) => GivenFactor::Code(code),
            (None, None) => return Err(FactorError::Required.into()),
        };
        let shared = Arc::new((session, principal.name.clone(), stored.user, factor));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (session, name, user, factor) = &*shared;
                    let user = unit.tx.user(user).await?.ok_or(ServiceError::NotAuthenticated)?;
                    match factor {
                        GivenFactor::None => {}
                        GivenFactor::Code(code) => use_code(unit, &user, code).await?,
                        GivenFactor::Passkey(verified) => use_passkey(unit, &user, verified).await?,
                    }
                    unit.tx.reauthenticate_session(session, unit.now).await?;
                    unit.record(AuditAction::SessionReauthenticated, name, &json!({"session": session})).await
                })
            })
            .await
    }

    /// Returns the second factors that the caller can use for re-authentication; `None` if none is required. Each
    /// response needs a new passkey challenge.
    pub async fn reauth_factors(
        self: &Arc<Self>,
        principal: &Principal,
        origin: Option<PasskeyOrigin>,
    ) -> Result<Option<AvailableFactors>, ServiceError> {
        let (AuthMethod::Session(session), Some(user)) = (&principal.via, &principal.user) else { return Ok(None) };
        let stored = self.context.read().await?.session(session).await?;
        if stored.is_none_or(|stored| stored.token.is_some())
            || !has_factor(&mut *self.context.read().await?, user).await?
        {
            return Ok(None);
        }
        let (holder, origin) = (session.as_str(), origin.as_ref());
        let factors = self.available_factors(user, ChallengePurpose::Reauthentication, holder, origin).await?;
        if factors.passkey.is_some() {
            return Ok(Some(factors));
        }
        self.request_passkey(user, ChallengePurpose::Reauthentication, holder, origin).await?;
        self.available_factors(user, ChallengePurpose::Reauthentication, holder, origin).await.map(Some)
    }

    /// Ends the caller's session.
    pub async fn log_out(self: &Arc<Self>, caller: Caller, principal: &Principal) -> Result<(), ServiceError> {
        let AuthMethod::Session(session) = principal.via.clone() else { return Ok(()) };
        let (name, user) = (principal.name.clone(), principal.user.clone());
        self.context
            .change(caller, move |unit| {
                let (session, name, user) = (session.clone(), name.clone(), user.clone());
                Box::pin(async move {
                    unit.tx.delete_session(&session).await?;
                    if let Some(user) = user {
                        unit.notify(Topic::Access(user));
                    }
                    unit.record(AuditAction::LoggedOut, &name, &json!({"session": session})).await
                })
            })
            .await
    }

    /// Ends a session: the caller's own, or one of a user with no more permissions.
    pub async fn end_session(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        session: SessionId,
    ) -> Result<(), ServiceError> {
        let principal = principal.clone();
        self.context
            .change(caller, move |unit| {
                let (principal, session) = (principal.clone(), session.clone());
                Box::pin(async move {
                    let stored = unit.tx.session(&session).await?.filter(|session| principal.can_manage(&session.user));
                    let stored = stored.ok_or_else(|| ServiceError::SessionNotFound(session.clone()))?;
                    let owner = unit
                        .tx
                        .user(&stored.user)
                        .await?
                        .ok_or_else(|| ServiceError::SessionNotFound(session.clone()))?;
                    if principal.user.as_ref() != Some(&owner.id) {
                        unit.require_covered(owner.role.permissions())?;
                    }
                    unit.tx.delete_session(&session).await?;
                    unit.notify(Topic::Access(owner.id.clone()));
                    unit.record(AuditAction::SessionEnded, &owner.name, &json!({"session": session})).await
                })
            })
            .await
    }

    /// Removes expired sessions.
    pub async fn sweep_sessions(self: &Arc<Self>) -> Result<(), ServiceError> {
        self.flush_last_used().await?;
        self.context
            .change(Caller::system(), |unit| {
                let idle_since = app::domain::time::Timestamp(unit.now.0 - unit.context.policy.accounts.session_idle.0);
                Box::pin(async move { Ok(unit.tx.sweep_sessions(unit.now, idle_since).await?) })
            })
            .await
    }

    /// Changes the caller's password, given the current one; ends their other sessions.
    pub async fn change_password(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        old: &str,
        new: &str,
    ) -> Result<(), ServiceError> {
        let user = principal.account_id()?;
        self.check_password(&principal.name, new).await?;
        let old_hash = self.context.read().await?.password_hash(&user).await?;
        if !self.verify_password(old_hash.clone(), old).await? {
            return Err(ServiceError::WrongPassword);
        }
        let hash = self.hash_password(new).await?;
        let by = ChangeAuthor::from_principal(principal);
        let current_session = match &principal.via {
            AuthMethod::Session(session) => Some(session.clone()),
            AuthMethod::Loopback | AuthMethod::Host | AuthMethod::Token { .. } => None,
        };
        self.context
            .change(caller, move |unit| {
                let (user, old_hash, hash, current_session) =
                    (user.clone(), old_hash.clone(), hash.clone(), current_session.clone());
                let by = by.clone();
                Box::pin(async move {
                    // Another request may have changed it since.
                    let is_unchanged = unit.tx.password_hash(&user).await? == old_hash;
                    let user =
                        unit.tx.user(&user).await?.filter(|_| is_unchanged).ok_or(ServiceError::WrongPassword)?;
                    unit.tx.put_password(&user.id, &hash).await?;
                    unit.record(AuditAction::PasswordChanged, &user.name, &json!({})).await?;
                    add_change_notice(unit, &user.id, NoticeKind::PasswordChanged, &by).await?;
                    end_sessions(unit, &user, current_session.as_ref()).await.map(|_| ())
                })
            })
            .await
    }
}

/// Ends a user's sessions except one; returns their number.
pub(super) async fn end_sessions(
    unit: &mut UnitOfWork<'_>,
    user: &StoredUser,
    except: Option<&SessionId>,
) -> Result<u64, ServiceError> {
    let mut ended = 0;
    for session in unit.tx.sessions(&user.id).await?.into_iter().filter(|session| Some(&session.id) != except) {
        unit.tx.delete_session(&session.id).await?;
        unit.notify(Topic::Access(user.id.clone()));
        unit.record(AuditAction::SessionEnded, &user.name, &json!({"session": session.id})).await?;
        ended += 1;
    }
    Ok(ended)
}
