//! Notices to a person about their account: unfamiliar logins, and changes to how they log in.

use core::net::IpAddr;

use super::network::Network;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A login from a browser in which this person had not logged in before.
    NewBrowser,
    /// A login from a known browser in a network from which this person had not logged in before.
    NewNetwork,
    /// The right password with a wrong code.
    WrongCode,
    /// The password was changed by who knew it.
    PasswordChanged,
    /// An admin set another password.
    PasswordReset,
    /// The right password with a passkey that was refused.
    WrongPasskey,
    /// The right password with a passkey whose counter went back: there may be a copy of it.
    PasskeyCopied,
    /// An authenticator app was set up.
    FactorAdded,
    /// The authenticator app was removed.
    FactorRemoved,
    /// A passkey was added.
    PasskeyAdded,
    /// A passkey was removed.
    PasskeyRemoved,
    /// An admin removed the authenticator app and all passkeys.
    FactorsRemoved,
    /// New recovery codes took the place of the old ones.
    RecoveryCodesRenewed,
    /// A recovery code was used.
    RecoveryCodeUsed,
}

impl NoticeKind {
    /// All there are.
    pub const ALL: [Self; 14] = [
        Self::NewBrowser,
        Self::NewNetwork,
        Self::WrongCode,
        Self::PasswordChanged,
        Self::PasswordReset,
        Self::WrongPasskey,
        Self::PasskeyCopied,
        Self::FactorAdded,
        Self::FactorRemoved,
        Self::PasskeyAdded,
        Self::PasskeyRemoved,
        Self::FactorsRemoved,
        Self::RecoveryCodesRenewed,
        Self::RecoveryCodeUsed,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NewBrowser => "new_browser",
            Self::NewNetwork => "new_network",
            Self::WrongCode => "wrong_code",
            Self::PasswordChanged => "password_changed",
            Self::PasswordReset => "password_reset",
            Self::WrongPasskey => "wrong_passkey",
            Self::PasskeyCopied => "passkey_copied",
            Self::FactorAdded => "factor_added",
            Self::FactorRemoved => "factor_removed",
            Self::PasskeyAdded => "passkey_added",
            Self::PasskeyRemoved => "passkey_removed",
            Self::FactorsRemoved => "factors_removed",
            Self::RecoveryCodesRenewed => "recovery_codes_renewed",
            Self::RecoveryCodeUsed => "recovery_code_used",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// What is known of a login before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Familiarity {
    /// Whether this person has logged in before at all.
    pub person: bool,
    /// In this browser.
    pub browser: bool,
    /// From this network.
    pub network: bool,
}

impl Familiarity {
    /// The notice that a login causes. A first login causes none.
    pub const fn notice(self) -> Option<NoticeKind> {
        match self {
            Self { person: false, .. } | Self { browser: true, network: true, .. } => None,
            Self { browser: false, .. } => Some(NoticeKind::NewBrowser),
            Self { network: false, .. } => Some(NoticeKind::NewNetwork),
        }
    }
}

/// The network by which an address is remembered: an IPv4 /24 or an IPv6 /48, within which home and office lines change.
pub fn network_of(host: IpAddr) -> Network {
    let prefix = if host.to_canonical().is_ipv4() { 24 } else { 48 };
    Network::around(host.to_canonical(), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unfamiliar_is_worth_a_notice_but_not_a_first_login() {
        let notice = |person, browser, network| Familiarity { person, browser, network }.notice();
        assert_eq!(notice(false, false, false), None);
        assert_eq!(notice(true, true, true), None);
        assert_eq!(notice(true, false, true), Some(NoticeKind::NewBrowser));
        assert_eq!(notice(true, false, false), Some(NoticeKind::NewBrowser));
        assert_eq!(notice(true, true, false), Some(NoticeKind::NewNetwork));
    }

    #[test]
    fn neighbours_share_a_network() {
        let of = |text: &str| network_of(text.parse().expect("an address")).to_string();
        assert_eq!((of("192.0.2.7"), of("::ffff:192.0.2.9")), ("192.0.2.0/24".to_owned(), "192.0.2.0/24".to_owned()));
        assert_eq!(of("2001:db8:1:2::3"), "2001:db8:1::/48");
    }

    #[test]
    fn kinds_have_names_of_their_own() {
        for kind in NoticeKind::ALL {
            assert_eq!(NoticeKind::parse(kind.as_str()), Some(kind));
        }
    }
}
