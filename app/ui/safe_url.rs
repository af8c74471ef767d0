//! URLs from untrusted data.

/// A URL that is safe in `href` and `src`: a path on this server, or an HTTP(S) URL.
///
/// Leptos escapes attributes but does not check schemes, so `javascript:` would pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SafeUrl(String);

impl SafeUrl {
    /// Validates a URL; an unsafe one becomes `#`.
    pub fn from_data(url: &str) -> Self {
        let is_local_path = url.starts_with('/') && !url.starts_with("//") && !url.starts_with("/\\");
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_printable = !url.chars().any(char::is_control);
        Self(if (is_local_path || is_web) && is_printable { url.to_owned() } else { "#".to_owned() })
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_and_web_addresses_pass() {
        for good in ["/api/queue/j_1/artifacts/a.png", "https://example.com/a", "http://example.com"] {
            assert_eq!(SafeUrl::from_data(good).into_string(), good);
        }
        for bad in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//evil.example",
            "/\\evil.example",
            "",
            "/a\nb",
            "JaVaScRiPt:x",
        ] {
            assert_eq!(SafeUrl::from_data(bad).into_string(), "#", "{bad}");
        }
    }
}
