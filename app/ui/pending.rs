//! What goes on once somebody has given more: a form, the password again; a login, its second step.

use crate::domain::second_factor::AvailableFactors;
use crate::protocol::access::factors::TotpEnrollment;

/// Somebody who has given the right password, and is to give a code.
#[derive(Clone, PartialEq, Eq)]
pub struct SecondFactorPrompt {
    /// The name.
    pub name: String,
    /// What the app is given that is to be set up; none for who has one.
    pub enrolment: Option<TotpEnrollment>,
    /// By what the second factor can be given.
    pub ways: AvailableFactors,
}

/// The field that holds the password.
pub const PASSWORD_FIELD: &str = "confirm_password";

/// The field that holds a code of the second factor.
pub const CODE_FIELD: &str = "confirm_code";

/// The field that holds what a passkey has signed.
pub const CREDENTIAL_FIELD: &str = "confirm_credential";

/// The fields that prove who sends a form: they are kept nowhere.
pub const PROOF_FIELDS: [&str; 3] = [PASSWORD_FIELD, CODE_FIELD, CREDENTIAL_FIELD];

/// A form as it was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingForm {
    /// Where it is sent.
    pub action: String,
    /// Its fields, in their order; one with several values stands several times.
    pub fields: Vec<(String, String)>,
}
