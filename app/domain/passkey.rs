//! Passkeys: the origins at which they work, and their names.

use super::text::is_plain;

/// Maximum number of passkeys of a user.
pub const MAX_PASSKEYS: usize = 20;
/// Maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// A web origin at which passkeys are created and used; they work at no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyOrigin {
    /// `https://host` or `https://host:8001`.
    pub url: String,
    /// The host name that a passkey is bound to.
    pub host: String,
}

/// Why passkeys cannot be used at an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasskeyOriginError {
    /// It is neither HTTPS nor localhost.
    Insecure,
    /// Its host is an IP address instead of a name.
    NoHostName,
}

impl PasskeyOriginError {
    /// Returns its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insecure => "insecure",
            Self::NoHostName => "no_name",
        }
    }
}

impl PasskeyOrigin {
    /// Parses a URL such as `https://host:8001`.
    pub fn from_url(url: &str) -> Result<Self, PasskeyOriginError> {
        match url.split_once("://") {
            Some((scheme, host)) => Self::new(scheme == "https", host),
            None => Err(PasskeyOriginError::NoHostName),
        }
    }

    /// Creates the origin of a page from the scheme and the host, optionally with a port.
    pub fn new(secure: bool, host: &str) -> Result<Self, PasskeyOriginError> {
        let host = host.to_ascii_lowercase();
        let (name, port) = host.split_once(':').map_or((host.as_str(), None), |(name, port)| (name, Some(port)));
        let is_local = name == "localhost" || name.ends_with(".localhost");
        if !is_host_name(name) || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(PasskeyOriginError::NoHostName);
        }
        if !secure && !is_local {
            return Err(PasskeyOriginError::Insecure);
        }
        // Browsers omit the default port.
        let (scheme, default_port) = if secure { ("https", "443") } else { ("http", "80") };
        let port = port.filter(|port| *port != default_port).map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self { url: format!("{scheme}://{name}{port}"), host: name.to_owned() })
    }
}

/// Returns whether a host is a name of letters, digits and hyphens, not an address.
fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
    host.split('.').all(is_label) && !host.rsplit('.').next().is_some_and(is_number)
}

/// Normalizes and validates the name of a passkey.
pub fn parse_name(text: &str) -> Option<&str> {
    let name = text.trim();
    (!name.is_empty() && is_plain(name, MAX_NAME_CHARS)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin_parts(secure: bool, host: &str) -> Result<(String, String), PasskeyOriginError> {
        PasskeyOrigin::new(secure, host).map(|origin| (origin.url, origin.host))
    }

    #[test]
    fn passkeys_work_at_secure_host_names() {
        for (secure, host, url, name) in [
            (true, "tuner.example", "https://tuner.example", "tuner.example"),
            (true, "Tuner.Example:8001", "https://tuner.example:8001", "tuner.example"),
            (true, "gpu-box:443", "https://gpu-box", "gpu-box"),
            (false, "localhost:8001", "http://localhost:8001", "localhost"),
            (false, "localhost:80", "http://localhost", "localhost"),
            (false, "a.localhost", "http://a.localhost", "a.localhost"),
            (true, "localhost", "https://localhost", "localhost"),
        ] {
            assert_eq!(origin_parts(secure, host), Ok((url.to_owned(), name.to_owned())), "{host}");
        }
    }

    #[test]
    fn passkeys_require_https_and_a_host_name() {
        for host in ["tuner.example", "tuner.example:8001", "localhost.example"] {
            assert_eq!(origin_parts(false, host), Err(PasskeyOriginError::Insecure), "{host}");
        }
        for host in ["127.0.0.1", "10.0.0.5:8001", "[::1]:8001", "[::1]", "", ":1", "a..b", "a/b", "a:x", "a:1:2", "1"]
        {
            assert_eq!(origin_parts(true, host), Err(PasskeyOriginError::NoHostName), "{host}");
        }
    }

    #[test]
    fn passkey_names_are_visible() {
        assert_eq!(parse_name(" YubiKey, blue "), Some("YubiKey, blue"));
        for text in ["", "  ", "a\u{202e}b", "a\nb", &"x".repeat(65)] {
            assert_eq!(parse_name(text), None, "{text:?}");
        }
    }
}
