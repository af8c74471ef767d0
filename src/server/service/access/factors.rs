//! Second factors: authenticator app, and the recovery codes that replace it or a passkey.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::UserId;
use app::domain::notice::NoticeKind;
use app::domain::second_factor::{EnteredCode, RECOVERY_CODES, is_unused_step};
use app::domain::time::Timestamp;
use app::protocol::access::factors::{FactorsView, RecoveryCodes, TotpEnrollment};
use serde_json::json;
use totp_rs::{Builder, Secret, Totp};

use super::notices::{ChangeAuthor, add_change_notice};
use super::{AuthMethod, Principal, passkeys};
use crate::random::Random;
use crate::service::ServiceContext;
use crate::service::access::AccessService;
use crate::service::error::{FactorError, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::access::StoredUser;
use crate::store::access::factors::StoredTotp;
use crate::store::{StoreError, Tx};
use crate::tokens;

/// The name under which the TOTP key is sealed for its owner.
const TOTP_SECRET_NAME: &str = "totp";
/// The issuer that authenticator apps display.
const ISSUER: &str = "SimpleTuner";

impl AccessService {
    /// Returns the second factors of a user.
    pub async fn user_factors(&self, id: &UserId) -> Result<FactorsView, ServiceError> {
        let mut tx = self.context.read().await?;
        let user = tx.user(id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
        let unused_codes = unused_code_count(&mut *tx, id).await?;
        Ok(FactorsView {
            totp_since: tx.totp(id).await?.and_then(|totp| totp.confirmed_at),
            passkeys: tx.passkeys(id).await?.into_iter().map(passkeys::passkey_view).collect(),
            recovery_codes_left: u32::try_from(unused_codes).unwrap_or(u32::MAX),
            required: self.context.policy.accounts.second_factor.applies_to(user.role),
        })
    }

    /// Returns what an authenticator app needs for its setup.
    pub async fn totp_enrollment(&self, user: &UserId) -> Result<TotpEnrollment, ServiceError> {
        let mut tx = self.context.read().await?;
        let name = tx.user(user).await?.ok_or_else(|| ServiceError::UserNotFound(user.clone()))?.name;
        let totp = tx.totp(user).await?.filter(|totp| totp.confirmed_at.is_none()).ok_or(FactorError::NoEnrollment)?;
        let totp = totp_app(&self.context, &totp, &name)?;
        let url = totp.to_url().map_err(|error| ServiceError::FilesUnavailable(error.to_string()))?;
        Ok(TotpEnrollment { secret: totp.secret().to_base32(), url })
    }

    pub async fn own_totp_enrollment(&self, principal: &Principal) -> Result<TotpEnrollment, ServiceError> {
        let user = self.require_password_session(principal).await?;
        self.totp_enrollment(&user).await
    }

    /// Starts the setup of an authenticator app for the caller.
    pub async fn begin_totp(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
    ) -> Result<TotpEnrollment, ServiceError> {
        let id = self.require_password_session(principal).await?;
        let user = self.context.read().await?.user(&id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
        self.begin_totp_enrollment(caller, &user).await?;
        self.totp_enrollment(&id).await
    }

    /// Creates a TOTP key; replaces one whose setup was not completed.
    pub(super) async fn begin_totp_enrollment(
        self: &Arc<Self>,
        caller: Caller,
        user: &StoredUser,
    ) -> Result<(), ServiceError> {
        let secret = Secret::from(self.context.random.bytes::<20>().to_vec()).to_base32();
        let sealed = self.context.vault.seal(&*self.context.random, user.id.as_str(), TOTP_SECRET_NAME, &secret)?;
        let (user, created_at) = (user.id.clone(), self.context.now());
        let totp = Arc::new(StoredTotp { user, sealed, created_at, confirmed_at: None, last_step: None });
        self.context
            .change(caller, move |unit| {
                let totp = Arc::clone(&totp);
                Box::pin(async move {
                    if has_totp(unit.tx, &totp.user).await? {
                        return Err(FactorError::AlreadyExists.into());
                    }
                    Ok(unit.tx.put_totp(&totp).await?)
                })
            })
            .await
    }

    /// Completes the setup of an authenticator app with its first code.
    pub async fn confirm_totp(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        code: &str,
    ) -> Result<RecoveryCodes, ServiceError> {
        let id = self.require_password_session(principal).await?;
        let codes = generate_codes(&*self.context.random);
        let shared = Arc::new((id, code.to_owned(), code_digests(&codes)));
        let confirmed = self.context.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (id, code, digests) = &*shared;
                let user = unit.tx.user(id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
                confirm_first_code(unit, &user, code, digests).await
            })
        });
        Ok(RecoveryCodes { recovery_codes: if confirmed.await? { codes } else { Vec::new() } })
    }

    /// Replaces the caller's recovery codes.
    pub async fn renew_recovery_codes(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
    ) -> Result<RecoveryCodes, ServiceError> {
        let id = self.require_password_session(principal).await?;
        let codes = generate_codes(&*self.context.random);
        let shared =
            Arc::new((id, code_digests(&codes), ChangeAuthor::from_principal(principal), principal.name.clone()));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (id, digests, by, name) = &*shared;
                    if !has_factor(unit.tx, id).await? {
                        return Err(FactorError::NotFound.into());
                    }
                    unit.tx.put_recovery_codes(id, digests).await?;
                    add_change_notice(unit, id, NoticeKind::RecoveryCodesRenewed, by).await?;
                    unit.record(AuditAction::RecoveryCodesRenewed, name, &json!({})).await
                })
            })
            .await?;
        Ok(RecoveryCodes { recovery_codes: codes })
    }

    /// Removes the caller's authenticator app.
    pub async fn remove_totp(self: &Arc<Self>, caller: Caller, principal: &Principal) -> Result<(), ServiceError> {
        let id = self.require_password_session(principal).await?;
        let shared = Arc::new((id, ChangeAuthor::from_principal(principal), principal.name.clone()));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (id, by, name) = &*shared;
                    if !has_totp(unit.tx, id).await? {
                        return Err(FactorError::NotFound.into());
                    }
                    unit.tx.delete_totp(id).await?;
                    remove_orphaned_codes(unit.tx, id).await?;
                    add_change_notice(unit, id, NoticeKind::FactorRemoved, by).await?;
                    unit.record(AuditAction::FactorRemoved, name, &json!({"factor": TOTP_SECRET_NAME})).await
                })
            })
            .await
    }

    /// Removes all second factors of a user who has lost them. The caller needs at least the user's permissions.
    pub async fn remove_user_factors(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        id: UserId,
    ) -> Result<(), ServiceError> {
        let by = ChangeAuthor::named(&principal.actor());
        self.context
            .change(caller, move |unit| {
                let (id, by) = (id.clone(), by.clone());
                Box::pin(async move {
                    let user = unit.tx.user(&id).await?.ok_or_else(|| ServiceError::UserNotFound(id.clone()))?;
                    unit.require_covered(user.role.permissions())?;
                    let totp = has_totp(unit.tx, &id).await?;
                    let passkeys: Vec<String> = unit.tx.passkeys(&id).await?.into_iter().map(|key| key.name).collect();
                    if !totp && passkeys.is_empty() {
                        return Err(FactorError::NotFound.into());
                    }
                    unit.tx.delete_factors(&id).await?;
                    add_change_notice(unit, &id, NoticeKind::FactorsRemoved, &by).await?;
                    let detail = json!({"factor": "all", "totp": totp, "passkeys": passkeys});
                    unit.record(AuditAction::FactorRemoved, &user.name, &detail).await
                })
            })
            .await
    }

    /// Requires a session that was opened with a password, and returns its user: a stolen token must not set up or
    /// remove second factors.
    pub(super) async fn require_password_session(&self, principal: &Principal) -> Result<UserId, ServiceError> {
        let user = principal.account_id()?;
        let AuthMethod::Session(session) = &principal.via else { return Err(FactorError::NoPasswordSession.into()) };
        let session = self.context.read().await?.session(session).await?.ok_or(ServiceError::NotAuthenticated)?;
        if session.token.is_none() { Ok(user) } else { Err(FactorError::NoPasswordSession.into()) }
    }
}

/// Returns whether the user has a second factor.
pub(super) async fn has_factor(tx: &mut dyn Tx, user: &UserId) -> Result<bool, ServiceError> {
    Ok(has_totp(tx, user).await? || !tx.passkeys(user).await?.is_empty())
}

/// Returns whether the user has an authenticator app whose setup is complete.
pub(super) async fn has_totp(tx: &mut dyn Tx, user: &UserId) -> Result<bool, ServiceError> {
    Ok(tx.totp(user).await?.is_some_and(|totp| totp.confirmed_at.is_some()))
}

/// Counts the unused recovery codes of a user.
pub(super) async fn unused_code_count(tx: &mut dyn Tx, user: &UserId) -> Result<usize, ServiceError> {
    Ok(tx.recovery_codes(user).await?.iter().filter(|code| code.used_at.is_none()).count())
}

/// Removes the recovery codes of a user who has no second factor left.
pub(super) async fn remove_orphaned_codes(tx: &mut dyn Tx, user: &UserId) -> Result<(), ServiceError> {
    if !has_factor(tx, user).await? {
        tx.put_recovery_codes(user, &[]).await?;
    }
    Ok(())
}

/// Accepts the first code of an app that is being set up; returns whether recovery codes were stored. Existing codes of
/// a user with a passkey stay valid.
pub(super) async fn confirm_first_code(
    unit: &mut UnitOfWork<'_>,
    user: &StoredUser,
    code: &str,
    digests: &[String],
) -> Result<bool, ServiceError> {
    let is_first = !has_factor(unit.tx, &user.id).await?;
    let totp =
        unit.tx.totp(&user.id).await?.filter(|totp| totp.confirmed_at.is_none()).ok_or(FactorError::NoEnrollment)?;
    let EnteredCode::OneTime(code) = EnteredCode::parse(code) else { return Err(FactorError::WrongCode.into()) };
    let step = matching_step(unit.context, &totp, &code, unit.now)?;
    unit.tx.put_totp(&StoredTotp { confirmed_at: Some(unit.now), last_step: Some(step), ..totp }).await?;
    if is_first {
        unit.tx.put_recovery_codes(&user.id, digests).await?;
    }
    add_change_notice(unit, &user.id, NoticeKind::FactorAdded, &ChangeAuthor::named(&user.name)).await?;
    unit.record(AuditAction::FactorAdded, &user.name, &json!({"factor": TOTP_SECRET_NAME})).await?;
    Ok(is_first)
}

/// Uses up a TOTP code or a recovery code; each works once.
pub(super) async fn use_code(unit: &mut UnitOfWork<'_>, user: &StoredUser, code: &str) -> Result<(), ServiceError> {
    match EnteredCode::parse(code) {
        EnteredCode::OneTime(code) => {
            let totp = unit.tx.totp(&user.id).await?.filter(|totp| totp.confirmed_at.is_some());
            let totp = totp.ok_or(FactorError::WrongCode)?;
            let step = matching_step(unit.context, &totp, &code, unit.now)?;
            Ok(unit.tx.put_totp(&StoredTotp { last_step: Some(step), ..totp }).await?)
        }
        EnteredCode::Recovery(code) => {
            match unit.tx.use_recovery_code(&user.id, &tokens::digest(&code), unit.now).await {
                Err(StoreError::Conflict) => return Err(FactorError::WrongCode.into()),
                other => other?,
            }
            let unused_codes = unused_code_count(unit.tx, &user.id).await?;
            add_change_notice(unit, &user.id, NoticeKind::RecoveryCodeUsed, &ChangeAuthor::named(&user.name)).await?;
            unit.record(AuditAction::RecoveryCodeUsed, &user.name, &json!({"left": unused_codes})).await
        }
    }
}

/// Returns the TOTP generator of a stored key.
fn totp_app(context: &ServiceContext, totp: &StoredTotp, name: &str) -> Result<Totp, ServiceError> {
    let invalid_key =
        |reason: String| ServiceError::FilesUnavailable(format!("invalid key of an authenticator app: {reason}"));
    let secret = context.vault.open(totp.user.as_str(), TOTP_SECRET_NAME, &totp.sealed)?;
    let secret = Secret::try_from_base32(secret).map_err(|error| invalid_key(error.to_string()))?;
    let app = Builder::new().with_secret(secret).with_account_name(name).with_issuer(Some(ISSUER)).build();
    app.map_err(|error| invalid_key(error.to_string()))
}

/// Returns the time step of a code that is correct and unused.
fn matching_step(
    context: &ServiceContext,
    totp: &StoredTotp,
    digits: &str,
    now: Timestamp,
) -> Result<i64, ServiceError> {
    let seconds = (now.0 / 1_000).max(0).unsigned_abs();
    let step = totp_app(context, totp, "")?.check(digits, seconds).and_then(|step| i64::try_from(step).ok());
    let unused = step.filter(|step| is_unused_step(*step, totp.last_step));
    Ok(unused.ok_or(FactorError::WrongCode)?)
}

/// Generates recovery codes in the form in which users type them.
pub(super) fn generate_codes(random: &dyn Random) -> Vec<String> {
    (0..RECOVERY_CODES).map(|_| tokens::recovery_code(random)).collect()
}

pub(super) fn code_digests(codes: &[String]) -> Vec<String> {
    let digest = |code: &String| match EnteredCode::parse(code) {
        EnteredCode::OneTime(plain) | EnteredCode::Recovery(plain) => tokens::digest(&plain),
    };
    codes.iter().map(digest).collect()
}
