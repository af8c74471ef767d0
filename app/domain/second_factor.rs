//! Second factors: who needs one, and which codes are valid.

use super::access::Role;

/// Number of recovery codes of a user.
pub const RECOVERY_CODES: usize = 10;

/// Which users must have a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondFactorPolicy {
    /// Optional: only users who have set one up need it.
    #[default]
    Off,
    /// Admins.
    Admins,
    /// All users.
    Everyone,
}

impl SecondFactorPolicy {
    /// Parses the setting.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "admins" => Ok(Self::Admins),
            "all" => Ok(Self::Everyone),
            _ => Err("use off, admins or all".to_owned()),
        }
    }

    /// Returns whether users of this role must have one.
    pub const fn applies_to(self, role: Role) -> bool {
        match self {
            Self::Off => false,
            Self::Admins => matches!(role, Role::Admin),
            Self::Everyone => true,
        }
    }
}

/// What is required after a correct password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLoginStep {
    /// Nothing: the session starts.
    Done,
    /// A second factor: a passkey, a code of the app, or a recovery code.
    SecondFactor,
    /// Setting up a second factor.
    Enrollment,
}

impl NextLoginStep {
    /// Decides by what the user has and must have.
    pub const fn new(has_factor: bool, required: SecondFactorPolicy, role: Role) -> Self {
        if has_factor {
            Self::SecondFactor
        } else if required.applies_to(role) {
            Self::Enrollment
        } else {
            Self::Done
        }
    }
}

/// The second factors that a user can use on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AvailableFactors {
    /// A code of an authenticator app.
    pub app: bool,
    /// An unused recovery code.
    pub recovery_codes: bool,
    /// A passkey: the options for the browser, as JSON.
    pub passkey: Option<String>,
    /// The origin of passkeys that do not work at this one.
    pub other_origin: Option<String>,
}

/// Returns whether a one-time code of this time step is acceptable: each step once, and none before the last one (RFC
/// 6238, 5.2).
pub fn is_unused_step(step: i64, last: Option<i64>) -> bool {
    last.is_none_or(|last| step > last)
}

/// A code that a user entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnteredCode {
    /// Six digits of an authenticator app.
    OneTime(String),
    /// Anything else: a recovery code in normalized form.
    Recovery(String),
}

impl EnteredCode {
    /// Parses a code; spaces, hyphens and case are ignored.
    pub fn parse(text: &str) -> Self {
        let normalized: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        if normalized.len() == 6 && normalized.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::OneTime(normalized)
        } else {
            Self::Recovery(normalized.to_ascii_uppercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_factor_is_required_or_enrolled() {
        use NextLoginStep::{Done, Enrollment, SecondFactor};
        for (policy, viewer, admin) in [
            (SecondFactorPolicy::Off, Done, Done),
            (SecondFactorPolicy::Admins, Done, Enrollment),
            (SecondFactorPolicy::Everyone, Enrollment, Enrollment),
        ] {
            assert_eq!(NextLoginStep::new(false, policy, Role::Viewer), viewer, "{policy:?}");
            assert_eq!(NextLoginStep::new(false, policy, Role::Admin), admin, "{policy:?}");
            assert_eq!(NextLoginStep::new(true, policy, Role::Viewer), SecondFactor, "{policy:?}");
        }
        assert_eq!(
            ["off", "admins", "all"].map(SecondFactorPolicy::parse),
            [Ok(SecondFactorPolicy::Off), Ok(SecondFactorPolicy::Admins), Ok(SecondFactorPolicy::Everyone)]
        );
        assert!(SecondFactorPolicy::parse("on").is_err());
    }

    #[test]
    fn time_step_is_used_once_and_in_order() {
        assert!(is_unused_step(7, None) && is_unused_step(8, Some(7)));
        assert!(!is_unused_step(7, Some(7)) && !is_unused_step(6, Some(7)));
    }

    #[test]
    fn entered_codes_are_normalized() {
        assert_eq!(EnteredCode::parse(" 123 456 "), EnteredCode::OneTime("123456".to_owned()));
        assert_eq!(EnteredCode::parse("abcdef-ghjkmn"), EnteredCode::Recovery("ABCDEFGHJKMN".to_owned()));
        assert_eq!(EnteredCode::parse("12345"), EnteredCode::Recovery("12345".to_owned()));
        assert_eq!(EnteredCode::parse(""), EnteredCode::Recovery(String::new()));
    }
}
