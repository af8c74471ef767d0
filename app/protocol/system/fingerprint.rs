//! The fingerprint of a server's key, by which an agent verifies the server without a certificate authority.
//!
//! It is the SHA-256 of the public key (the certificate's `SubjectPublicKeyInfo`) and not of the certificate, so that it
//! stays when the certificate is renewed. `openssl` computes the same:
//! `openssl x509 -in cert.pem -noout -pubkey | openssl pkey -pubin -outform der | sha256sum`

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A fingerprint, see the module documentation. As text: `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 32]);

/// The text is not a [`Fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintParseError;

impl fmt::Display for FingerprintParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fingerprint is `sha256:` and 64 hexadecimal digits, as the orchestrator shows it")
    }
}

impl std::error::Error for FingerprintParseError {}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Accepts upper- and lower-case digits, with or without colons between the bytes.
impl FromStr for Fingerprint {
    type Err = FingerprintParseError;
    fn from_str(text: &str) -> Result<Self, FingerprintParseError> {
        let (algorithm, digits) = text.trim().split_once(':').ok_or(FingerprintParseError)?;
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
        if !algorithm.eq_ignore_ascii_case("sha256") || digits.len() != 64 {
            return Err(FingerprintParseError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte =
                digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low).ok_or(FingerprintParseError)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintParseError;
    fn try_from(text: String) -> Result<Self, FingerprintParseError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_parses_in_every_notation() {
        let fingerprint = Fingerprint(std::array::from_fn(|at| u8::try_from(at * 8 + 3).unwrap_or_default()));
        let printed = fingerprint.to_string();
        assert!(printed.starts_with("sha256:030b131b") && printed.len() == 71, "{printed}");
        let digits = &printed["sha256:".len()..];
        let colons = digits.as_bytes().chunks(2).map(String::from_utf8_lossy).collect::<Vec<_>>().join(":");
        for text in [printed.clone(), format!("SHA256:{}", digits.to_uppercase()), format!(" sha256:{colons}\n")] {
            assert_eq!(text.parse(), Ok(fingerprint), "{text}");
        }
        for text in ["", "sha256:", digits, &printed[..70], &format!("md5:{digits}"), &printed.replace("03", "0x")] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintParseError), "{text}");
        }
    }
}
