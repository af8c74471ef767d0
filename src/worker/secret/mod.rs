//! Text that must not appear in logs.

pub mod agent_secrets;
mod encodings;
pub mod mask;
mod visible_text;

use std::fmt;

use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};

/// A token or key. `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Trims white space, which files and copying add.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// As a header value that is never printed; empty if it contains invalid characters.
    pub fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// The plain text, for an environment.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_trimmed_and_hidden() {
        let secret = Secret::new(" wt_abc\n");
        assert_eq!(secret.reveal(), "wt_abc");
        assert!(!format!("{secret:?} {:?}", secret.header()).contains("wt_"));
        assert_eq!(secret.header(), "wt_abc");
    }
}
