//! Second factors of people.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// `GET /api/account/factors`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorsView {
    /// Since when an authenticator app is set up; null if none is.
    pub totp_since: Option<Timestamp>,
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

/// New recovery codes: shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    /// Each works once, in place of a code of the app.
    pub recovery_codes: Vec<String>,
}
