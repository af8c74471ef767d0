//! Second factors of users.

use serde::{Deserialize, Serialize};

use crate::domain::ids::PasskeyId;
use crate::domain::time::Timestamp;

/// `GET /api/account/factors`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorsView {
    /// When the authenticator app was set up; null if there is none.
    pub totp_since: Option<Timestamp>,
    /// The passkeys, oldest first.
    #[serde(default)]
    pub passkeys: Vec<PasskeyView>,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Whether the server requires a second factor of this user.
    pub required: bool,
}

/// `POST /api/account/totp`: the key for an authenticator app.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TotpEnrollment {
    /// The key in base 32, to enter in the app.
    pub secret: String,
    /// The same key as a URI (`otpauth://totp/…`), to show as a QR code.
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
    /// The passkey's ID, by which it is removed.
    pub id: PasskeyId,
    /// The passkey's name.
    pub name: String,
    /// The origin where it was created; it works only there.
    pub origin: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used; null if never.
    pub last_used_at: Option<Timestamp>,
}

/// `POST /api/account/passkeys`: the options for the browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PasskeyEnrollment {
    /// The options of `navigator.credentials.create()`, in the JSON format of `WebAuthn`
    /// (`PublicKeyCredentialCreationOptionsJSON`).
    pub options: serde_json::Value,
}

/// `POST /api/account/passkeys/confirm`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmPasskey {
    /// The passkey's name: 1 to 64 characters.
    pub name: String,
    /// The browser's response, in the JSON format of `WebAuthn` (`RegistrationResponseJSON`).
    pub credential: serde_json::Value,
}

/// The answer to [`ConfirmPasskey`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddedPasskey {
    /// The passkey.
    pub passkey: PasskeyView,
    /// Recovery codes, shown only once, if this is the user's first second factor. Otherwise existing codes stay valid.
    pub recovery_codes: Vec<String>,
}

/// New recovery codes, shown only once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NewRecoveryCodes"))]
pub struct RecoveryCodes {
    /// Each works once, instead of the app or a passkey. Empty if an app was set up in addition to a passkey: existing
    /// codes stay valid.
    pub recovery_codes: Vec<String>,
}
