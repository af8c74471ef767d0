//! Second factors of people.

use serde::{Deserialize, Serialize};

use crate::domain::ids::PasskeyId;
use crate::domain::time::Timestamp;

/// `GET /api/account/factors`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorsView {
    /// Since when an authenticator app is set up; null if none is.
    pub totp_since: Option<Timestamp>,
    /// The passkeys, oldest first.
    #[serde(default)]
    pub passkeys: Vec<PasskeyView>,
    /// How many recovery codes are unused.
    pub recovery_codes_left: u32,
    /// Whether the server requires a second factor of this person.
    pub required: bool,
}

/// `POST /api/account/totp`: what an authenticator app is given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TotpEnrolment {
    /// The key, in base 32, to type into the app.
    pub secret: String,
    /// The same as an address (`otpauth://totp/…`), to show as a QR code.
    pub url: String,
}

/// `POST /api/account/totp/confirm`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmTotp {
    /// The six digits that the app shows.
    pub code: String,
}

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PasskeyView {
    /// The id, by which it is removed.
    pub id: PasskeyId,
    /// What its owner calls it.
    pub name: String,
    /// The address where it was made and where alone it works.
    pub origin: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used; null if never.
    pub last_used_at: Option<Timestamp>,
}

/// `POST /api/account/passkeys`: what the browser is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PasskeyEnrolment {
    /// The options of `navigator.credentials.create()`, as `WebAuthn` writes them in JSON
    /// (`PublicKeyCredentialCreationOptionsJSON`).
    pub options: serde_json::Value,
}

/// `POST /api/account/passkeys/confirm`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmPasskey {
    /// What it is to be called: 1 to 64 characters.
    pub name: String,
    /// What the browser made of the options, as `WebAuthn` writes it in JSON (`RegistrationResponseJSON`).
    pub credential: serde_json::Value,
}

/// The answer to [`ConfirmPasskey`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddedPasskey {
    /// The passkey.
    pub passkey: PasskeyView,
    /// The recovery codes, if this is the first second factor: shown this once. Otherwise those from before go on working.
    pub recovery_codes: Vec<String>,
}

/// New recovery codes: shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    /// Each works once, in place of the app or a passkey. None where an app was set up beside a passkey: those from before
    /// go on working.
    pub recovery_codes: Vec<String>,
}
