//! Passkeys: adding, removing, and verifying at sign-in. The protocol is implemented by `webauthn-rs`, as a second
//! factor because the password was given before: whether the key also asks for a PIN or a fingerprint is up to the key.

use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::ids::{PasskeyId, SessionId, UserId};
use app::domain::notice::NoticeKind;
use app::domain::passkey::{MAX_NAME_CHARS, MAX_PASSKEYS, PasskeyOrigin, PasskeyOriginError, parse_name};
use app::domain::second_factor::AvailableFactors;
use app::domain::time::Timestamp;
use app::protocol::access::factors::{AddedPasskey, ConfirmPasskey, PasskeyEnrollment, PasskeyView};
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

use super::factors::{code_digests, generate_codes, has_factor, has_totp, remove_orphaned_codes, unused_code_count};
use super::notices::{ChangeAuthor, add_change_notice};
use super::{AuthMethod, PENDING_LOGIN_LIFETIME, Principal};
use crate::service::access::AccessService;
use crate::service::error::{FactorError, InvalidInput, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::access::StoredUser;
use crate::store::access::passkeys::{ChallengePurpose, PasskeyChallenge, StoredPasskey};

/// The relying-party name that browsers display.
const RELYING_PARTY: &str = "SimpleTuner";
/// The name of the factor in the audit log.
const FACTOR_NAME: &str = "passkey";

/// A verified passkey signature.
#[derive(Debug)]
pub(super) struct VerifiedPasskey {
    result: AuthenticationResult,
    challenged_at: Timestamp,
}

impl AccessService {
    /// Starts adding a passkey for the caller, at the origin of the request.
    pub async fn begin_passkey(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        origin: Result<PasskeyOrigin, PasskeyOriginError>,
    ) -> Result<PasskeyEnrollment, ServiceError> {
        let id = self.require_password_session(principal).await?;
        let origin = origin.map_err(FactorError::PasskeysUnavailable)?;
        let existing = self.context.read().await?.passkeys(&id).await?;
        check_passkey_limit(existing.len())?;
        let existing = existing.iter().map(|key| Ok(from_json::<SecurityKey>(&key.credential)?.cred_id().clone()));
        let existing = existing.collect::<Result<Vec<CredentialID>, ServiceError>>()?;
        let (mut options, state) = relying_party(&origin)?
            .start_securitykey_registration(
                user_handle(&id),
                &principal.name,
                &principal.name,
                Some(existing),
                None,
                None,
            )
            .map_err(|error| internal_error(&error))?;
        // Any kind of passkey is accepted, and a key without a PIN would never show one that is bound to its PIN.
        (options.public_key.hints, options.public_key.extensions) = (None, None);
        let options = serde_json::to_value(&options.public_key).map_err(|error| internal_error(&error))?;
        let challenge = self.new_challenge(&id, &origin, &options, &state)?;
        self.store_challenge(caller, ChallengePurpose::Registration, challenge_holder(principal)?.as_str(), challenge)
            .await?;
        Ok(PasskeyEnrollment { options })
    }

    /// Returns the passkey that the caller is adding.
    pub async fn own_passkey_enrolment(&self, principal: &Principal) -> Result<PasskeyEnrollment, ServiceError> {
        self.require_password_session(principal).await?;
        let challenge = self
            .context
            .read()
            .await?
            .challenge(ChallengePurpose::Registration, challenge_holder(principal)?.as_str())
            .await?;
        let challenge = challenge
            .filter(|challenge| challenge.expires_at > self.context.now())
            .ok_or(FactorError::PasskeyExpired)?;
        Ok(PasskeyEnrollment { options: from_json(&challenge.options)? })
    }

    /// Adds the passkey that a browser has created.
    pub async fn confirm_passkey(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        confirm: ConfirmPasskey,
    ) -> Result<AddedPasskey, ServiceError> {
        let user = self.require_password_session(principal).await?;
        let allowed = AllowedValues::VisibleCharacters { min: 1, max: MAX_NAME_CHARS as u64 };
        let name = parse_name(&confirm.name).ok_or(InvalidInput::OutOfRange { field: "name", allowed })?.to_owned();
        let challenge =
            self.take_challenge(ChallengePurpose::Registration, challenge_holder(principal)?.as_str(), &user).await?;
        let credential = verify_registration(&challenge, confirm.credential)?;
        let passkey = StoredPasskey {
            id: PasskeyId::new(self.context.now(), self.context.entropy()),
            user,
            name,
            origin: challenge.origin,
            credential_id: BASE64_URL_SAFE_NO_PAD.encode(credential.cred_id()),
            credential: to_json(&credential)?,
            created_at: self.context.now(),
            used_at: None,
        };
        let codes = generate_codes(&*self.context.random);
        let added = passkey_view(passkey.clone());
        let shared =
            Arc::new((passkey, code_digests(&codes), ChangeAuthor::from_principal(principal), principal.name.clone()));
        let is_first = self.context.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (passkey, digests, by, name) = &*shared;
                add_passkey(unit, passkey, digests, by, name).await
            })
        });
        Ok(AddedPasskey { recovery_codes: if is_first.await? { codes } else { Vec::new() }, passkey: added })
    }

    /// Removes one of the caller's passkeys.
    pub async fn remove_passkey(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        id: PasskeyId,
    ) -> Result<(), ServiceError> {
        let user = self.require_password_session(principal).await?;
        let shared = Arc::new((user, id, ChangeAuthor::from_principal(principal), principal.name.clone()));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (user, id, by, name) = &*shared;
                    let found = unit.tx.passkeys(user).await?.into_iter().find(|passkey| passkey.id == *id);
                    let passkey = found.ok_or(FactorError::PasskeyNotFound)?;
                    unit.tx.delete_passkey(id).await?;
                    remove_orphaned_codes(unit.tx, user).await?;
                    add_change_notice(unit, user, NoticeKind::PasskeyRemoved, by).await?;
                    unit.record(AuditAction::FactorRemoved, name, &json!({"factor": FACTOR_NAME, "name": passkey.name}))
                        .await
                })
            })
            .await
    }

    /// Creates a challenge for the user's passkeys at this origin, if there are any.
    pub(super) async fn request_passkey(
        self: &Arc<Self>,
        user: &UserId,
        purpose: ChallengePurpose,
        holder: &str,
        origin: Option<&PasskeyOrigin>,
    ) -> Result<(), ServiceError> {
        let Some(origin) = origin else { return Ok(()) };
        let mut keys = self.context.read().await?.passkeys(user).await?;
        keys.retain(|key| key.origin == origin.url);
        if keys.is_empty() {
            return Ok(());
        }
        let keys =
            keys.iter().map(|key| from_json(&key.credential)).collect::<Result<Vec<SecurityKey>, ServiceError>>()?;
        let started = relying_party(origin)?.start_securitykey_authentication(&keys);
        let (mut options, state) = started.map_err(|error| internal_error(&error))?;
        options.public_key.hints = None;
        let options = serde_json::to_value(&options.public_key).map_err(|error| internal_error(&error))?;
        let challenge = self.new_challenge(user, origin, &options, &state)?;
        self.store_challenge(Caller::system(), purpose, holder, challenge).await
    }

    /// Returns the second factors that a user can use at this origin.
    pub(super) async fn available_factors(
        &self,
        user: &UserId,
        purpose: ChallengePurpose,
        holder: &str,
        origin: Option<&PasskeyOrigin>,
    ) -> Result<AvailableFactors, ServiceError> {
        let mut tx = self.context.read().await?;
        let challenge = tx.challenge(purpose, holder).await?;
        let challenge =
            challenge.filter(|challenge| challenge.user == *user && challenge.expires_at > self.context.now());
        let has_other_origin = |key: &StoredPasskey| origin.is_none_or(|origin| key.origin != origin.url);
        let mut other_keys = tx.passkeys(user).await?;
        other_keys.retain(has_other_origin);
        Ok(AvailableFactors {
            app: has_totp(&mut *tx, user).await?,
            recovery_codes: unused_code_count(&mut *tx, user).await? > 0,
            other_origin: other_keys.pop().map(|key| key.origin).filter(|_| challenge.is_none()),
            passkey: challenge.map(|challenge| challenge.options),
        })
    }

    /// Verifies a passkey's signature. Each challenge is used once.
    pub(super) async fn verify_passkey(
        self: &Arc<Self>,
        purpose: ChallengePurpose,
        holder: &str,
        user: &UserId,
        response: &str,
    ) -> Result<VerifiedPasskey, ServiceError> {
        let challenge = self.take_challenge(purpose, holder, user).await?;
        let response: PublicKeyCredential = serde_json::from_str(response).map_err(|_| FactorError::WrongPasskey)?;
        let state: SecurityKeyAuthentication = from_json(&challenge.state)?;
        let origin = PasskeyOrigin::from_url(&challenge.origin).map_err(FactorError::PasskeysUnavailable)?;
        match relying_party(&origin)?.finish_securitykey_authentication(&response, &state) {
            Ok(result) => Ok(VerifiedPasskey { result, challenged_at: challenge.created_at }),
            Err(WebauthnError::CredentialPossibleCompromise) => Err(FactorError::PasskeyCopied.into()),
            Err(error) => Err(passkey_error(&error)),
        }
    }

    fn new_challenge<S: Serialize>(
        &self,
        user: &UserId,
        origin: &PasskeyOrigin,
        options: &serde_json::Value,
        state: &S,
    ) -> Result<PasskeyChallenge, ServiceError> {
        Ok(PasskeyChallenge {
            user: user.clone(),
            origin: origin.url.clone(),
            options: options.to_string(),
            state: to_json(state)?,
            created_at: self.context.now(),
            expires_at: self.context.now() + PENDING_LOGIN_LIFETIME,
        })
    }

    async fn store_challenge(
        self: &Arc<Self>,
        caller: Caller,
        purpose: ChallengePurpose,
        holder: &str,
        challenge: PasskeyChallenge,
    ) -> Result<(), ServiceError> {
        let shared = Arc::new((holder.to_owned(), challenge));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move { Ok(unit.tx.put_challenge(purpose, &shared.0, &shared.1).await?) })
            })
            .await
    }

    /// Removes the challenge from the database before the response is checked, so that a wrong response cannot be
    /// followed by another try.
    async fn take_challenge(
        self: &Arc<Self>,
        purpose: ChallengePurpose,
        holder: &str,
        user: &UserId,
    ) -> Result<PasskeyChallenge, ServiceError> {
        let holder = holder.to_owned();
        let challenge = self.context.change(Caller::system(), move |unit| {
            let holder = holder.clone();
            Box::pin(async move { Ok(unit.tx.take_challenge(purpose, &holder).await?) })
        });
        let challenge =
            challenge.await?.filter(|challenge| challenge.user == *user && challenge.expires_at > self.context.now());
        Ok(challenge.ok_or(FactorError::PasskeyExpired)?)
    }
}

/// Verifies a browser's registration of a new passkey.
fn verify_registration(
    challenge: &PasskeyChallenge,
    credential: serde_json::Value,
) -> Result<SecurityKey, ServiceError> {
    let registration: RegisterPublicKeyCredential =
        serde_json::from_value(credential).map_err(|_| FactorError::WrongPasskey)?;
    let state: SecurityKeyRegistration = from_json(&challenge.state)?;
    let origin = PasskeyOrigin::from_url(&challenge.origin).map_err(FactorError::PasskeysUnavailable)?;
    relying_party(&origin)?
        .finish_securitykey_registration(&registration, &state)
        .map_err(|error| passkey_error(&error))
}

/// Adds a passkey; returns whether it is the first second factor, so that recovery codes were stored.
async fn add_passkey(
    unit: &mut UnitOfWork<'_>,
    passkey: &StoredPasskey,
    digests: &[String],
    by: &ChangeAuthor,
    name: &str,
) -> Result<bool, ServiceError> {
    if unit.tx.has_credential(&passkey.credential_id).await? {
        return Err(FactorError::PasskeyExists.into());
    }
    check_passkey_limit(unit.tx.passkeys(&passkey.user).await?.len())?;
    let is_first = !has_factor(unit.tx, &passkey.user).await?;
    unit.tx.insert_passkey(passkey).await?;
    if is_first {
        unit.tx.put_recovery_codes(&passkey.user, digests).await?;
    }
    add_change_notice(unit, &passkey.user, NoticeKind::PasskeyAdded, by).await?;
    unit.record(AuditAction::FactorAdded, name, &json!({"factor": FACTOR_NAME, "name": passkey.name})).await?;
    Ok(is_first)
}

/// Accepts a passkey's signature, if its owner still has the passkey, and stores its counter. Fails if the passkey was
/// used since the challenge, because an old counter was compared then.
pub(super) async fn use_passkey(
    unit: &mut UnitOfWork<'_>,
    user: &StoredUser,
    verified: &VerifiedPasskey,
) -> Result<(), ServiceError> {
    let credential_id = BASE64_URL_SAFE_NO_PAD.encode(verified.result.cred_id());
    let found = unit.tx.passkeys(&user.id).await?.into_iter().find(|key| key.credential_id == credential_id);
    let passkey = found.ok_or(FactorError::WrongPasskey)?;
    if passkey.used_at.is_some_and(|at| at > verified.challenged_at) {
        return Err(FactorError::PasskeyExpired.into());
    }
    let mut credential: SecurityKey = from_json(&passkey.credential)?;
    credential.update_credential(&verified.result);
    Ok(unit.tx.record_passkey_use(&passkey.id, &to_json(&credential)?, unit.now).await?)
}

/// Converts to the view for its owner.
pub(super) fn passkey_view(passkey: StoredPasskey) -> PasskeyView {
    PasskeyView {
        id: passkey.id,
        name: passkey.name,
        origin: passkey.origin,
        created_at: passkey.created_at,
        last_used_at: passkey.used_at,
    }
}

fn check_passkey_limit(count: usize) -> Result<(), ServiceError> {
    let limit = u64::try_from(MAX_PASSKEYS).unwrap_or(u64::MAX);
    if count < MAX_PASSKEYS {
        Ok(())
    } else {
        Err(InvalidInput::TooMuch { items: LimitedItems::Passkeys, limit }.into())
    }
}

fn challenge_holder(principal: &Principal) -> Result<&SessionId, ServiceError> {
    match &principal.via {
        AuthMethod::Session(session) => Ok(session),
        AuthMethod::Loopback | AuthMethod::Host | AuthMethod::Token { .. } => {
            Err(FactorError::NoPasswordSession.into())
        }
    }
}

/// The user handle for authenticators; it reveals nothing about the user.
fn user_handle(user: &UserId) -> Uuid {
    let digest = Sha256::digest(user.as_str().as_bytes());
    Uuid::from_slice(&digest[..16]).unwrap_or_default()
}

fn relying_party(origin: &PasskeyOrigin) -> Result<Webauthn, ServiceError> {
    let url = Url::parse(&origin.url).map_err(|error| internal_error(&error))?;
    let builder = WebauthnBuilder::new(&origin.host, &url).map(|builder| builder.rp_name(RELYING_PARTY));
    builder.and_then(WebauthnBuilder::build).map_err(|error| internal_error(&error))
}

fn passkey_error(error: &WebauthnError) -> ServiceError {
    tracing::info!(%error, "rejected a passkey");
    FactorError::WrongPasskey.into()
}

fn internal_error(error: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::FilesUnavailable(format!("invalid passkey: {error}"))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ServiceError> {
    serde_json::from_str(text).map_err(|error| internal_error(&error))
}

fn to_json<T: Serialize>(value: &T) -> Result<String, ServiceError> {
    serde_json::to_string(value).map_err(|error| internal_error(&error))
}
