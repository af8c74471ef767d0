//! Passkeys: at which addresses they work, and what may be called so.

use super::text::is_plain;

/// How many a person may have.
pub const MOST: usize = 20;
/// The longest name, in characters.
pub const LONGEST_NAME: usize = 64;

/// An address at which passkeys are made and work, and no other: what browsers call an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `https://host` or `https://host:8001`.
    pub url: String,
    /// The host alone, which a passkey is bound to.
    pub host: String,
}

/// Why there can be no passkeys at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPasskeys {
    /// It is neither HTTPS nor this machine.
    Insecure,
    /// It has an IP address in the place of a name.
    NoName,
}

impl NoPasskeys {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insecure => "insecure",
            Self::NoName => "no_name",
        }
    }
}

impl Origin {
    /// Of an address as a page tells it: `https://host:8001`.
    pub fn of_url(url: &str) -> Result<Self, NoPasskeys> {
        match url.split_once("://") {
            Some((scheme, host)) => Self::of(scheme == "https", host),
            None => Err(NoPasskeys::NoName),
        }
    }

    /// Of a page that was asked for under this host, perhaps with a port, over HTTPS or not.
    pub fn of(secure: bool, host: &str) -> Result<Self, NoPasskeys> {
        let host = host.to_ascii_lowercase();
        let (name, port) = host.split_once(':').map_or((host.as_str(), None), |(name, port)| (name, Some(port)));
        let is_local = name == "localhost" || name.ends_with(".localhost");
        if !is_name(name) || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(NoPasskeys::NoName);
        }
        if !secure && !is_local {
            return Err(NoPasskeys::Insecure);
        }
        // Browsers leave out the usual port.
        let (scheme, usual) = if secure { ("https", "443") } else { ("http", "80") };
        let port = port.filter(|port| *port != usual).map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self { url: format!("{scheme}://{name}{port}"), host: name.to_owned() })
    }
}

/// Whether a host is a name: letters, digits and hyphens, and no address.
fn is_name(host: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    host.split('.').all(part) && !host.rsplit('.').next().is_some_and(is_number)
}

/// The name of a passkey as it is kept, if it can be one.
pub fn name_of(text: &str) -> Option<&str> {
    let name = text.trim();
    (!name.is_empty() && is_plain(name, LONGEST_NAME)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(secure: bool, host: &str) -> Result<(String, String), NoPasskeys> {
        Origin::of(secure, host).map(|origin| (origin.url, origin.host))
    }

    #[test]
    fn passkeys_work_at_names_that_nobody_can_listen_in_on() {
        for (secure, host, url, name) in [
            (true, "tuner.example", "https://tuner.example", "tuner.example"),
            (true, "Tuner.Example:8001", "https://tuner.example:8001", "tuner.example"),
            (true, "gpu-box:443", "https://gpu-box", "gpu-box"),
            (false, "localhost:8001", "http://localhost:8001", "localhost"),
            (false, "localhost:80", "http://localhost", "localhost"),
            (false, "a.localhost", "http://a.localhost", "a.localhost"),
            (true, "localhost", "https://localhost", "localhost"),
        ] {
            assert_eq!(of(secure, host), Ok((url.to_owned(), name.to_owned())), "{host}");
        }
    }

    #[test]
    fn there_are_none_over_plain_http_and_none_at_an_ip_address() {
        for host in ["tuner.example", "tuner.example:8001", "localhost.example"] {
            assert_eq!(of(false, host), Err(NoPasskeys::Insecure), "{host}");
        }
        for host in ["127.0.0.1", "10.0.0.5:8001", "[::1]:8001", "[::1]", "", ":1", "a..b", "a/b", "a:x", "a:1:2", "1"]
        {
            assert_eq!(of(true, host), Err(NoPasskeys::NoName), "{host}");
        }
    }

    #[test]
    fn a_name_can_be_seen() {
        assert_eq!(name_of(" YubiKey, blue "), Some("YubiKey, blue"));
        for text in ["", "  ", "a\u{202e}b", "a\nb", &"x".repeat(65)] {
            assert_eq!(name_of(text), None, "{text:?}");
        }
    }
}
