//! Notices to users about their account: unfamiliar sign-ins, and changes of credentials.

use core::net::IpAddr;

use super::network::Network;

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A sign-in from a browser that the user had not used before.
    NewBrowser,
    /// A sign-in from a known browser in a network that the user had not used before.
    NewNetwork,
    /// A correct password with a wrong code.
    WrongCode,
    /// The user changed the password.
    PasswordChanged,
    /// An admin reset the password.
    PasswordReset,
    /// A correct password with a rejected passkey.
    WrongPasskey,
    /// A correct password with a passkey whose counter decreased: the passkey may have been copied.
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
    /// The recovery codes were replaced.
    RecoveryCodesRenewed,
    /// A recovery code was used.
    RecoveryCodeUsed,
}

impl NoticeKind {
    /// All kinds.
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

    /// Returns the name of the kind.
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

    /// Parses the name of a kind.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// What is known about a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginFamiliarity {
    /// Whether the user has signed in before.
    pub has_logged_in: bool,
    /// Whether the user has used this browser before.
    pub is_known_browser: bool,
    /// Whether the user has used this network before.
    pub is_known_network: bool,
}

impl LoginFamiliarity {
    /// Returns the notice for a sign-in. The first sign-in of a user creates none.
    pub const fn notice(self) -> Option<NoticeKind> {
        match self {
            Self { has_logged_in: false, .. } | Self { is_known_browser: true, is_known_network: true, .. } => None,
            Self { is_known_browser: false, .. } => Some(NoticeKind::NewBrowser),
            Self { is_known_network: false, .. } => Some(NoticeKind::NewNetwork),
        }
    }
}

/// Returns the network by which a sign-in address is remembered: an IPv4 /24 or an IPv6 /48, because addresses of home
/// and office lines change within it.
pub fn login_network(host: IpAddr) -> Network {
    let prefix = if host.to_canonical().is_ipv4() { 24 } else { 48 };
    Network::containing(host.to_canonical(), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfamiliar_sign_in_creates_a_notice_except_the_first() {
        let notice = |has_logged_in, is_known_browser, is_known_network| {
            LoginFamiliarity { has_logged_in, is_known_browser, is_known_network }.notice()
        };
        assert_eq!(notice(false, false, false), None);
        assert_eq!(notice(true, true, true), None);
        assert_eq!(notice(true, false, true), Some(NoticeKind::NewBrowser));
        assert_eq!(notice(true, false, false), Some(NoticeKind::NewBrowser));
        assert_eq!(notice(true, true, false), Some(NoticeKind::NewNetwork));
    }

    #[test]
    fn neighboring_addresses_share_a_network() {
        let network = |text: &str| login_network(text.parse().expect("an address")).to_string();
        assert_eq!(
            (network("192.0.2.7"), network("::ffff:192.0.2.9")),
            ("192.0.2.0/24".to_owned(), "192.0.2.0/24".to_owned())
        );
        assert_eq!(network("2001:db8:1:2::3"), "2001:db8:1::/48");
    }

    #[test]
    fn kinds_have_unique_names() {
        for kind in NoticeKind::ALL {
            assert_eq!(NoticeKind::parse(kind.as_str()), Some(kind));
        }
    }
}
