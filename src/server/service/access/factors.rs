//! Second factors: an authenticator app, and the recovery codes that stand in for it or a passkey.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::factor::{RECOVERY_CODES, TypedCode, is_fresh};
use app::domain::ids::UserId;
use app::domain::notice::NoticeKind;
use app::domain::time::Timestamp;
use app::protocol::factors::{FactorsView, RecoveryCodes, TotpEnrolment};
use serde_json::json;
use totp_rs::{Builder, Secret, Totp};

use super::notices::{Changer, notify_of_change};
use super::{Person, Via, passkeys};
use crate::random::Random;
use crate::service::Core;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::service::unit::{Caller, Unit};
use crate::store::access::StoredUser;
use crate::store::factors::StoredTotp;
use crate::store::{StoreError, Tx};
use crate::tokens;

/// The name under which a key is sealed for its owner.
const SEALED: &str = "totp";
/// Who an authenticator app says the code is for.
const ISSUER: &str = "SimpleTuner";

impl Core {
    /// The second factors of somebody.
    pub async fn factors_of(&self, id: &UserId) -> Result<FactorsView, Refusal> {
        let mut tx = self.read().await?;
        let user = tx.user(id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
        let left = codes_left(&mut *tx, id).await?;
        Ok(FactorsView {
            totp_since: tx.totp(id).await?.and_then(|totp| totp.confirmed_at),
            passkeys: tx.passkeys(id).await?.into_iter().map(passkeys::view).collect(),
            recovery_codes_left: u32::try_from(left).unwrap_or(u32::MAX),
            required: self.policy.accounts.second_factor.applies_to(user.role),
        })
    }

    /// What an app is given that is being set up.
    pub async fn enrolment_of(&self, user: &UserId) -> Result<TotpEnrolment, Refusal> {
        let mut tx = self.read().await?;
        let name = tx.user(user).await?.ok_or_else(|| Refusal::NoUser(user.clone()))?.name;
        let totp = tx.totp(user).await?.filter(|totp| totp.confirmed_at.is_none()).ok_or(FactorRefusal::NotBegun)?;
        let totp = self.app_of(&totp, &name)?;
        let url = totp.to_url().map_err(|error| Refusal::Files(error.to_string()))?;
        Ok(TotpEnrolment { secret: totp.secret().to_base32(), url })
    }

    /// The same for whoever asks.
    pub async fn own_enrolment(&self, person: &Person) -> Result<TotpEnrolment, Refusal> {
        let user = self.with_password(person).await?;
        self.enrolment_of(&user).await
    }

    /// Begins to set up an app for whoever asks.
    pub async fn begin_totp(self: &Arc<Self>, caller: Caller, person: &Person) -> Result<TotpEnrolment, Refusal> {
        let id = self.with_password(person).await?;
        let user = self.read().await?.user(&id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
        self.begin_enrolment(caller, &user).await?;
        self.enrolment_of(&id).await
    }

    /// Makes the key of an app that is to be set up, in place of one that was never finished.
    pub(super) async fn begin_enrolment(self: &Arc<Self>, caller: Caller, user: &StoredUser) -> Result<(), Refusal> {
        let secret = Secret::from(self.random.bytes::<20>().to_vec()).to_base32();
        let sealed = self.vault.seal(&*self.random, user.id.as_str(), SEALED, &secret)?;
        let (user, created_at) = (user.id.clone(), self.now());
        let totp = Arc::new(StoredTotp { user, sealed, created_at, confirmed_at: None, last_step: None });
        self.change(caller, move |unit| {
            let totp = Arc::clone(&totp);
            Box::pin(async move {
                if has_app(unit.tx, &totp.user).await? {
                    return Err(FactorRefusal::Exists.into());
                }
                Ok(unit.tx.put_totp(&totp).await?)
            })
        })
        .await
    }

    /// Finishes setting an app up, by its first code.
    pub async fn confirm_totp(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        code: &str,
    ) -> Result<RecoveryCodes, Refusal> {
        let id = self.with_password(person).await?;
        let codes = new_codes(&*self.random);
        let shared = Arc::new((id, code.to_owned(), digests(&codes)));
        let kept = self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (id, code, digests) = &*shared;
                let user = unit.tx.user(id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
                confirm(unit, &user, code, digests).await
            })
        });
        Ok(RecoveryCodes { recovery_codes: if kept.await? { codes } else { Vec::new() } })
    }

    /// Replaces one's own recovery codes.
    pub async fn renew_recovery_codes(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
    ) -> Result<RecoveryCodes, Refusal> {
        let id = self.with_password(person).await?;
        let codes = new_codes(&*self.random);
        let shared = Arc::new((id, digests(&codes), Changer::of(person), person.name.clone()));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (id, digests, by, name) = &*shared;
                if !has_factor(unit.tx, id).await? {
                    return Err(FactorRefusal::Missing.into());
                }
                unit.tx.put_recovery_codes(id, digests).await?;
                notify_of_change(unit, id, NoticeKind::RecoveryCodesRenewed, by).await?;
                unit.record(Action::RecoveryCodesRenewed, name, &json!({})).await
            })
        })
        .await?;
        Ok(RecoveryCodes { recovery_codes: codes })
    }

    /// Removes one's own authenticator app.
    pub async fn remove_totp(self: &Arc<Self>, caller: Caller, person: &Person) -> Result<(), Refusal> {
        let id = self.with_password(person).await?;
        let shared = Arc::new((id, Changer::of(person), person.name.clone()));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (id, by, name) = &*shared;
                if !has_app(unit.tx, id).await? {
                    return Err(FactorRefusal::Missing.into());
                }
                unit.tx.delete_totp(id).await?;
                forget_useless_codes(unit.tx, id).await?;
                notify_of_change(unit, id, NoticeKind::FactorRemoved, by).await?;
                unit.record(Action::FactorRemoved, name, &json!({"factor": SEALED})).await
            })
        })
        .await
    }

    /// Removes all second factors of somebody with no more permissions: they have lost them and the codes.
    pub async fn remove_factors_of(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        id: UserId,
    ) -> Result<(), Refusal> {
        let by = Changer::named(&person.actor());
        self.change(caller, move |unit| {
            let (id, by) = (id.clone(), by.clone());
            Box::pin(async move {
                let user = unit.tx.user(&id).await?.ok_or_else(|| Refusal::NoUser(id.clone()))?;
                unit.covers(user.role.permissions())?;
                let totp = has_app(unit.tx, &id).await?;
                let passkeys: Vec<String> = unit.tx.passkeys(&id).await?.into_iter().map(|key| key.name).collect();
                if !totp && passkeys.is_empty() {
                    return Err(FactorRefusal::Missing.into());
                }
                unit.tx.delete_factors(&id).await?;
                notify_of_change(unit, &id, NoticeKind::FactorsRemoved, &by).await?;
                let detail = json!({"factor": "all", "totp": totp, "passkeys": passkeys});
                unit.record(Action::FactorRemoved, &user.name, &detail).await
            })
        })
        .await
    }

    /// Whose second factor it is to manage: of whoever came in with a password. A token must not set up or remove what
    /// protects against its thief.
    pub(super) async fn with_password(&self, person: &Person) -> Result<UserId, Refusal> {
        let user = person.account()?;
        let Via::Session(session) = &person.via else { return Err(FactorRefusal::NoPasswordSession.into()) };
        let session = self.read().await?.session(session).await?.ok_or(Refusal::Nobody)?;
        if session.token.is_none() { Ok(user) } else { Err(FactorRefusal::NoPasswordSession.into()) }
    }

    /// The app that has this key.
    fn app_of(&self, totp: &StoredTotp, name: &str) -> Result<Totp, Refusal> {
        let broken = |why: String| Refusal::Files(format!("the key of an authenticator app is not usable: {why}"));
        let secret = self.vault.open(totp.user.as_str(), SEALED, &totp.sealed)?;
        let secret = Secret::try_from_base32(secret).map_err(|error| broken(error.to_string()))?;
        let app = Builder::new().with_secret(secret).with_account_name(name).with_issuer(Some(ISSUER)).build();
        app.map_err(|error| broken(error.to_string()))
    }
}

/// Whether somebody has a second factor.
pub(super) async fn has_factor(tx: &mut dyn Tx, user: &UserId) -> Result<bool, Refusal> {
    Ok(has_app(tx, user).await? || !tx.passkeys(user).await?.is_empty())
}

/// Whether somebody has an authenticator app; one that is being set up does not count.
pub(super) async fn has_app(tx: &mut dyn Tx, user: &UserId) -> Result<bool, Refusal> {
    Ok(tx.totp(user).await?.is_some_and(|totp| totp.confirmed_at.is_some()))
}

/// How many recovery codes of somebody are unused.
pub(super) async fn codes_left(tx: &mut dyn Tx, user: &UserId) -> Result<usize, Refusal> {
    Ok(tx.recovery_codes(user).await?.iter().filter(|code| code.used_at.is_none()).count())
}

/// Removes the recovery codes of whoever has nothing left that they stand in for.
pub(super) async fn forget_useless_codes(tx: &mut dyn Tx, user: &UserId) -> Result<(), Refusal> {
    if !has_factor(tx, user).await? {
        tx.put_recovery_codes(user, &[]).await?;
    }
    Ok(())
}

/// Takes the first code of an app that is being set up. Whether the recovery codes were kept: those that somebody has
/// beside a passkey go on working.
pub(super) async fn confirm(
    unit: &mut Unit<'_>,
    user: &StoredUser,
    code: &str,
    digests: &[String],
) -> Result<bool, Refusal> {
    let is_first = !has_factor(unit.tx, &user.id).await?;
    let totp =
        unit.tx.totp(&user.id).await?.filter(|totp| totp.confirmed_at.is_none()).ok_or(FactorRefusal::NotBegun)?;
    let TypedCode::OneTime(code) = TypedCode::read(code) else { return Err(FactorRefusal::WrongCode.into()) };
    let step = step_of(unit.core, &totp, &code, unit.now)?;
    unit.tx.put_totp(&StoredTotp { confirmed_at: Some(unit.now), last_step: Some(step), ..totp }).await?;
    if is_first {
        unit.tx.put_recovery_codes(&user.id, digests).await?;
    }
    notify_of_change(unit, &user.id, NoticeKind::FactorAdded, &Changer::named(&user.name)).await?;
    unit.record(Action::FactorAdded, &user.name, &json!({"factor": SEALED})).await?;
    Ok(is_first)
}

/// Uses a code of the app, or a recovery code: each works once.
pub(super) async fn use_code(unit: &mut Unit<'_>, user: &StoredUser, code: &str) -> Result<(), Refusal> {
    match TypedCode::read(code) {
        TypedCode::OneTime(code) => {
            let totp = unit.tx.totp(&user.id).await?.filter(|totp| totp.confirmed_at.is_some());
            let totp = totp.ok_or(FactorRefusal::WrongCode)?;
            let step = step_of(unit.core, &totp, &code, unit.now)?;
            Ok(unit.tx.put_totp(&StoredTotp { last_step: Some(step), ..totp }).await?)
        }
        TypedCode::Recovery(code) => {
            match unit.tx.use_recovery_code(&user.id, &tokens::digest(&code), unit.now).await {
                Err(StoreError::Conflict) => return Err(FactorRefusal::WrongCode.into()),
                other => other?,
            }
            let left = codes_left(unit.tx, &user.id).await?;
            notify_of_change(unit, &user.id, NoticeKind::RecoveryCodeUsed, &Changer::named(&user.name)).await?;
            unit.record(Action::RecoveryCodeUsed, &user.name, &json!({"left": left})).await
        }
    }
}

/// The time step of a code, if it is right and may still be used.
fn step_of(core: &Core, totp: &StoredTotp, digits: &str, now: Timestamp) -> Result<i64, Refusal> {
    let seconds = (now.0 / 1_000).max(0).unsigned_abs();
    let step = core.app_of(totp, "")?.check(digits, seconds).and_then(|step| i64::try_from(step).ok());
    let fresh = step.filter(|step| is_fresh(*step, totp.last_step));
    Ok(fresh.ok_or(FactorRefusal::WrongCode)?)
}

/// New recovery codes, as people type them.
pub(super) fn new_codes(random: &dyn Random) -> Vec<String> {
    (0..RECOVERY_CODES).map(|_| tokens::recovery_code(random)).collect()
}

/// What is kept of recovery codes.
pub(super) fn digests(codes: &[String]) -> Vec<String> {
    let kept = |code: &String| match TypedCode::read(code) {
        TypedCode::OneTime(plain) | TypedCode::Recovery(plain) => tokens::digest(&plain),
    };
    codes.iter().map(kept).collect()
}
