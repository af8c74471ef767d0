//! Requests that wait for another proof: a form for the password, a sign-in for its second factor.

use crate::domain::second_factor::AvailableFactors;
use crate::protocol::access::factors::TotpEnrollment;

/// A sign-in with a correct password that still needs a second factor.
#[derive(Clone, PartialEq, Eq)]
pub struct SecondFactorPrompt {
    /// The user's name.
    pub name: String,
    /// The secret for an authenticator app if the user must set one up; `None` if they have a second factor.
    pub enrolment: Option<TotpEnrollment>,
    /// The second factors that the user can use.
    pub factors: AvailableFactors,
}

/// The field with the password.
pub const PASSWORD_FIELD: &str = "confirm_password";

/// The field with a code of the second factor.
pub const CODE_FIELD: &str = "confirm_code";

/// The field with the response of a passkey.
pub const CREDENTIAL_FIELD: &str = "confirm_credential";

/// The fields with proofs of identity, which are never stored.
pub const PROOF_FIELDS: [&str; 3] = [PASSWORD_FIELD, CODE_FIELD, CREDENTIAL_FIELD];

/// A submitted form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingForm {
    /// The address to which it was posted.
    pub action: String,
    /// The fields in their order; a field with several values is repeated.
    pub fields: Vec<(String, String)>,
}
