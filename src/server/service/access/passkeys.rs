//! Passkeys: how they are added and removed, and what they sign when somebody logs in. The protocol is `webauthn-rs`'s; its
//! second-factor half, because the password was given before: whether the key also asks for a PIN or a finger is up to it.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::factor::Ways;
use app::domain::ids::{PasskeyId, SessionId, UserId};
use app::domain::notice::NoticeKind;
use app::domain::passkey::{LONGEST_NAME, MOST, NoPasskeys, Origin, name_of};
use app::domain::time::Timestamp;
use app::protocol::factors::{AddedPasskey, ConfirmPasskey, PasskeyEnrolment, PasskeyView};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use sha2::{Digest, Sha256};
use webauthn_rs::prelude::{
    AuthenticationResult, CredentialID, PublicKeyCredential, RegisterPublicKeyCredential, SecurityKey,
    SecurityKeyAuthentication, SecurityKeyRegistration, Url, Uuid, Webauthn, WebauthnBuilder, WebauthnError,
};

use super::factors::{codes_left, digests, forget_useless_codes, has_app, has_factor, new_codes};
use super::notices::{Changer, notify_of_change};
use super::{PENDING, Person, Via};
use crate::service::Core;
use crate::service::refusal::{FactorRefusal, Invalid, Refusal};
use crate::service::unit::{Caller, Unit};
use crate::store::access::StoredUser;
use crate::store::passkeys::{Challenge, Purpose, StoredPasskey};

/// Who a browser says the passkey is for.
const RELYING_PARTY: &str = "SimpleTuner";
/// What the audit trail calls it.
const FACTOR: &str = "passkey";

/// What a passkey has signed, and it was right.
#[derive(Debug)]
pub(super) struct Shown {
    result: AuthenticationResult,
    asked_at: Timestamp,
}

impl Core {
    /// Begins to add a passkey for whoever asks, at the address by which they came.
    pub async fn begin_passkey(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        origin: Result<Origin, NoPasskeys>,
    ) -> Result<PasskeyEnrolment, Refusal> {
        let id = self.with_password(person).await?;
        let origin = origin.map_err(FactorRefusal::NoPasskeysHere)?;
        let known = self.read().await?.passkeys(&id).await?;
        check_room(known.len())?;
        let known = known.iter().map(|key| Ok(read::<SecurityKey>(&key.credential)?.cred_id().clone()));
        let known = known.collect::<Result<Vec<CredentialID>, Refusal>>()?;
        let (mut options, state) = relying_party(&origin)?
            .start_securitykey_registration(handle(&id), &person.name, &person.name, Some(known), None, None)
            .map_err(|error| broken(&error))?;
        // Any kind of passkey is welcome, and a key without a PIN would never show one that is bound to its PIN.
        (options.public_key.hints, options.public_key.extensions) = (None, None);
        let options = serde_json::to_value(&options.public_key).map_err(|error| broken(&error))?;
        let challenge = self.challenge_of(&id, &origin, &options, &state)?;
        self.keep_challenge(caller, Purpose::SetUp, holder(person)?.as_str(), challenge).await?;
        Ok(PasskeyEnrolment { options })
    }

    /// The passkey that whoever asks is adding.
    pub async fn own_passkey_enrolment(&self, person: &Person) -> Result<PasskeyEnrolment, Refusal> {
        self.with_password(person).await?;
        let found = self.read().await?.challenge(Purpose::SetUp, holder(person)?.as_str()).await?;
        let found = found.filter(|challenge| challenge.ends_at > self.now()).ok_or(FactorRefusal::NothingAsked)?;
        Ok(PasskeyEnrolment { options: read(&found.options)? })
    }

    /// Adds the passkey that a browser has made.
    pub async fn confirm_passkey(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        confirm: ConfirmPasskey,
    ) -> Result<AddedPasskey, Refusal> {
        let user = self.with_password(person).await?;
        let allowed = "1 to 64 characters that can be seen";
        const { assert!(LONGEST_NAME == 64) };
        let name = name_of(&confirm.name).ok_or(Invalid::Range { field: "name", allowed })?.to_owned();
        let challenge = self.take_challenge(Purpose::SetUp, holder(person)?.as_str(), &user).await?;
        let credential = checked(&challenge, confirm.credential)?;
        let passkey = StoredPasskey {
            id: PasskeyId::new(self.now(), self.entropy()),
            user,
            name,
            origin: challenge.origin,
            credential_id: BASE64_URL_SAFE_NO_PAD.encode(credential.cred_id()),
            credential: written(&credential)?,
            created_at: self.now(),
            used_at: None,
        };
        let codes = new_codes(&*self.random);
        let added = view(passkey.clone());
        let shared = Arc::new((passkey, digests(&codes), Changer::of(person), person.name.clone()));
        let is_first = self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (passkey, digests, by, name) = &*shared;
                add(unit, passkey, digests, by, name).await
            })
        });
        Ok(AddedPasskey { recovery_codes: if is_first.await? { codes } else { Vec::new() }, passkey: added })
    }

    /// Removes one of one's own passkeys.
    pub async fn remove_passkey(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        id: PasskeyId,
    ) -> Result<(), Refusal> {
        let user = self.with_password(person).await?;
        let shared = Arc::new((user, id, Changer::of(person), person.name.clone()));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (user, id, by, name) = &*shared;
                let found = unit.tx.passkeys(user).await?.into_iter().find(|passkey| passkey.id == *id);
                let passkey = found.ok_or(FactorRefusal::NoPasskey)?;
                unit.tx.delete_passkey(id).await?;
                forget_useless_codes(unit.tx, user).await?;
                notify_of_change(unit, user, NoticeKind::PasskeyRemoved, by).await?;
                unit.record(Action::FactorRemoved, name, &json!({"factor": FACTOR, "name": passkey.name})).await
            })
        })
        .await
    }

    /// Asks for one of the passkeys that somebody has for this address, if there are any.
    pub(super) async fn ask_for_passkey(
        self: &Arc<Self>,
        user: &UserId,
        purpose: Purpose,
        holder: &str,
        origin: Option<&Origin>,
    ) -> Result<(), Refusal> {
        let Some(origin) = origin else { return Ok(()) };
        let mut keys = self.read().await?.passkeys(user).await?;
        keys.retain(|key| key.origin == origin.url);
        if keys.is_empty() {
            return Ok(());
        }
        let keys = keys.iter().map(|key| read(&key.credential)).collect::<Result<Vec<SecurityKey>, Refusal>>()?;
        let started = relying_party(origin)?.start_securitykey_authentication(&keys);
        let (mut options, state) = started.map_err(|error| broken(&error))?;
        options.public_key.hints = None;
        let options = serde_json::to_value(&options.public_key).map_err(|error| broken(&error))?;
        let challenge = self.challenge_of(user, origin, &options, &state)?;
        self.keep_challenge(Caller::system(), purpose, holder, challenge).await
    }

    /// The second factors that a person can use here.
    pub(super) async fn ways_of(
        &self,
        user: &UserId,
        purpose: Purpose,
        holder: &str,
        origin: Option<&Origin>,
    ) -> Result<Ways, Refusal> {
        let mut tx = self.read().await?;
        let asked = tx.challenge(purpose, holder).await?;
        let asked = asked.filter(|challenge| challenge.user == *user && challenge.ends_at > self.now());
        let is_elsewhere = |key: &StoredPasskey| origin.is_none_or(|origin| key.origin != origin.url);
        let mut elsewhere = tx.passkeys(user).await?;
        elsewhere.retain(is_elsewhere);
        Ok(Ways {
            app: has_app(&mut *tx, user).await?,
            codes: codes_left(&mut *tx, user).await? > 0,
            elsewhere: elsewhere.pop().map(|key| key.origin).filter(|_| asked.is_none()),
            passkey: asked.map(|challenge| challenge.options),
        })
    }

    /// Checks what a passkey has signed. It was asked for once, and is not any more.
    pub(super) async fn shown(
        self: &Arc<Self>,
        purpose: Purpose,
        holder: &str,
        user: &UserId,
        answer: &str,
    ) -> Result<Shown, Refusal> {
        let challenge = self.take_challenge(purpose, holder, user).await?;
        let answer: PublicKeyCredential = serde_json::from_str(answer).map_err(|_| FactorRefusal::WrongPasskey)?;
        let state: SecurityKeyAuthentication = read(&challenge.state)?;
        let origin = Origin::of_url(&challenge.origin).map_err(FactorRefusal::NoPasskeysHere)?;
        match relying_party(&origin)?.finish_securitykey_authentication(&answer, &state) {
            Ok(result) => Ok(Shown { result, asked_at: challenge.created_at }),
            Err(WebauthnError::CredentialPossibleCompromise) => Err(FactorRefusal::PasskeyCopied.into()),
            Err(error) => Err(refused(&error)),
        }
    }

    fn challenge_of<S: Serialize>(
        &self,
        user: &UserId,
        origin: &Origin,
        options: &serde_json::Value,
        state: &S,
    ) -> Result<Challenge, Refusal> {
        Ok(Challenge {
            user: user.clone(),
            origin: origin.url.clone(),
            options: options.to_string(),
            state: written(state)?,
            created_at: self.now(),
            ends_at: self.now() + PENDING,
        })
    }

    async fn keep_challenge(
        self: &Arc<Self>,
        caller: Caller,
        purpose: Purpose,
        holder: &str,
        challenge: Challenge,
    ) -> Result<(), Refusal> {
        let shared = Arc::new((holder.to_owned(), challenge));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move { Ok(unit.tx.put_challenge(purpose, &shared.0, &shared.1).await?) })
        })
        .await
    }

    /// What is asked of somebody, who answers now. It is gone before the answer is looked at, or a wrong one could be
    /// followed by another.
    async fn take_challenge(
        self: &Arc<Self>,
        purpose: Purpose,
        holder: &str,
        user: &UserId,
    ) -> Result<Challenge, Refusal> {
        let holder = holder.to_owned();
        let taken = self.change(Caller::system(), move |unit| {
            let holder = holder.clone();
            Box::pin(async move { Ok(unit.tx.take_challenge(purpose, &holder).await?) })
        });
        let taken = taken.await?.filter(|challenge| challenge.user == *user && challenge.ends_at > self.now());
        Ok(taken.ok_or(FactorRefusal::NothingAsked)?)
    }
}

/// Checks what a browser has made of a passkey that is being added.
fn checked(challenge: &Challenge, credential: serde_json::Value) -> Result<SecurityKey, Refusal> {
    let answer: RegisterPublicKeyCredential =
        serde_json::from_value(credential).map_err(|_| FactorRefusal::WrongPasskey)?;
    let state: SecurityKeyRegistration = read(&challenge.state)?;
    let origin = Origin::of_url(&challenge.origin).map_err(FactorRefusal::NoPasskeysHere)?;
    relying_party(&origin)?.finish_securitykey_registration(&answer, &state).map_err(|error| refused(&error))
}

/// Adds a passkey; whether it is the first second factor, for which the recovery codes were kept.
async fn add(
    unit: &mut Unit<'_>,
    passkey: &StoredPasskey,
    digests: &[String],
    by: &Changer,
    name: &str,
) -> Result<bool, Refusal> {
    if unit.tx.has_credential(&passkey.credential_id).await? {
        return Err(FactorRefusal::PasskeyThere.into());
    }
    check_room(unit.tx.passkeys(&passkey.user).await?.len())?;
    let is_first = !has_factor(unit.tx, &passkey.user).await?;
    unit.tx.insert_passkey(passkey).await?;
    if is_first {
        unit.tx.put_recovery_codes(&passkey.user, digests).await?;
    }
    notify_of_change(unit, &passkey.user, NoticeKind::PasskeyAdded, by).await?;
    unit.record(Action::FactorAdded, name, &json!({"factor": FACTOR, "name": passkey.name})).await?;
    Ok(is_first)
}

/// Takes what a passkey has signed for its owner, who still has it; and keeps its counter. One that was used since it was
/// asked was compared with a counter that is old.
pub(super) async fn use_passkey(unit: &mut Unit<'_>, user: &StoredUser, shown: &Shown) -> Result<(), Refusal> {
    let credential_id = BASE64_URL_SAFE_NO_PAD.encode(shown.result.cred_id());
    let found = unit.tx.passkeys(&user.id).await?.into_iter().find(|key| key.credential_id == credential_id);
    let passkey = found.ok_or(FactorRefusal::WrongPasskey)?;
    if passkey.used_at.is_some_and(|at| at > shown.asked_at) {
        return Err(FactorRefusal::NothingAsked.into());
    }
    let mut credential: SecurityKey = read(&passkey.credential)?;
    credential.update_credential(&shown.result);
    Ok(unit.tx.note_passkey(&passkey.id, &written(&credential)?, unit.now).await?)
}

/// As its owner is shown it.
pub(super) fn view(passkey: StoredPasskey) -> PasskeyView {
    PasskeyView {
        id: passkey.id,
        name: passkey.name,
        origin: passkey.origin,
        created_at: passkey.created_at,
        last_used_at: passkey.used_at,
    }
}

fn check_room(there: usize) -> Result<(), Refusal> {
    let limit = u64::try_from(MOST).unwrap_or(u64::MAX);
    if there < MOST { Ok(()) } else { Err(Invalid::TooMuch { what: "passkeys", limit }.into()) }
}

/// The session of whoever asks.
fn holder(person: &Person) -> Result<&SessionId, Refusal> {
    match &person.via {
        Via::Session(session) => Ok(session),
        Via::Loopback | Via::Host | Via::Token { .. } => Err(FactorRefusal::NoPasswordSession.into()),
    }
}

/// How an authenticator knows a person again: it tells them nothing.
fn handle(user: &UserId) -> Uuid {
    let digest = Sha256::digest(user.as_str().as_bytes());
    Uuid::from_slice(&digest[..16]).unwrap_or_default()
}

fn relying_party(origin: &Origin) -> Result<Webauthn, Refusal> {
    let url = Url::parse(&origin.url).map_err(|error| broken(&error))?;
    let builder = WebauthnBuilder::new(&origin.host, &url).map(|builder| builder.rp_name(RELYING_PARTY));
    builder.and_then(WebauthnBuilder::build).map_err(|error| broken(&error))
}

fn refused(error: &WebauthnError) -> Refusal {
    tracing::info!(%error, "a passkey was refused");
    FactorRefusal::WrongPasskey.into()
}

fn broken(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::Files(format!("a passkey is not usable: {error}"))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|error| broken(&error))
}

fn written<T: Serialize>(what: &T) -> Result<String, Refusal> {
    serde_json::to_string(what).map_err(|error| broken(&error))
}
