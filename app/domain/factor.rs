//! Second factors: who needs one, and which codes count.

use super::access::Role;

/// How many recovery codes a person has.
pub const RECOVERY_CODES: usize = 10;

/// Who must have a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FactorRule {
    /// Optional: only people who have set one up are asked for it.
    #[default]
    Off,
    /// Admins.
    Admins,
    /// Everybody.
    All,
}

impl FactorRule {
    /// Reads the setting.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "admins" => Ok(Self::Admins),
            "all" => Ok(Self::All),
            _ => Err("write off, admins or all".to_owned()),
        }
    }

    /// Whether people of this role must have one.
    pub const fn applies_to(self, role: Role) -> bool {
        match self {
            Self::Off => false,
            Self::Admins => matches!(role, Role::Admin),
            Self::All => true,
        }
    }
}

/// What a login takes after the right password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPassword {
    /// Nothing: the session begins.
    Nothing,
    /// A second factor: a passkey, a code of the app, or a recovery code.
    Factor,
    /// Setting up a second factor.
    Enrolment,
}

impl AfterPassword {
    /// By what the person has, and must have.
    pub const fn of(has_factor: bool, required: FactorRule, role: Role) -> Self {
        if has_factor {
            Self::Factor
        } else if required.applies_to(role) {
            Self::Enrolment
        } else {
            Self::Nothing
        }
    }
}

/// The second factors that a person can use on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    /// A code of an authenticator app.
    pub app: bool,
    /// A recovery code: there is one that was not used.
    pub codes: bool,
    /// A passkey: what the browser asks it to sign, as JSON.
    pub passkey: Option<String>,
    /// Where the passkeys work that do not work here.
    pub elsewhere: Option<String>,
}

/// Whether a one-time code of this time step may be used: each once, and none from before the last one (RFC 6238, 5.2).
pub fn is_fresh(step: i64, last: Option<i64>) -> bool {
    last.is_none_or(|last| step > last)
}

/// What was typed as a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedCode {
    /// Six digits of an authenticator app.
    OneTime(String),
    /// Anything else: a recovery code, as it is kept.
    Recovery(String),
}

impl TypedCode {
    /// Reads it; blanks, hyphens and case do not matter.
    pub fn read(text: &str) -> Self {
        let plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        if plain.len() == 6 && plain.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::OneTime(plain)
        } else {
            Self::Recovery(plain.to_ascii_uppercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_factor_is_asked_for_it_and_who_must_have_one_sets_it_up() {
        use AfterPassword::{Enrolment, Factor, Nothing};
        for (rule, viewer, admin) in [
            (FactorRule::Off, Nothing, Nothing),
            (FactorRule::Admins, Nothing, Enrolment),
            (FactorRule::All, Enrolment, Enrolment),
        ] {
            assert_eq!(AfterPassword::of(false, rule, Role::Viewer), viewer, "{rule:?}");
            assert_eq!(AfterPassword::of(false, rule, Role::Admin), admin, "{rule:?}");
            assert_eq!(AfterPassword::of(true, rule, Role::Viewer), Factor, "{rule:?}");
        }
        assert_eq!(
            ["off", "admins", "all"].map(FactorRule::parse),
            [Ok(FactorRule::Off), Ok(FactorRule::Admins), Ok(FactorRule::All)]
        );
        assert!(FactorRule::parse("on").is_err());
    }

    #[test]
    fn a_step_is_used_once_and_never_after_a_later_one() {
        assert!(is_fresh(7, None) && is_fresh(8, Some(7)));
        assert!(!is_fresh(7, Some(7)) && !is_fresh(6, Some(7)));
    }

    #[test]
    fn codes_are_read_as_people_type_them() {
        assert_eq!(TypedCode::read(" 123 456 "), TypedCode::OneTime("123456".to_owned()));
        assert_eq!(TypedCode::read("abcdef-ghjkmn"), TypedCode::Recovery("ABCDEFGHJKMN".to_owned()));
        assert_eq!(TypedCode::read("12345"), TypedCode::Recovery("12345".to_owned()));
        assert_eq!(TypedCode::read(""), TypedCode::Recovery(String::new()));
    }
}
