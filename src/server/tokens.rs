//! Secrets of users and agents: a prefix, 256 random bits in base 62, and a checksum.
//!
//! Prefix and checksum let scanners find tokens, and reveal typing errors without a database query. Only the SHA-256 of
//! a token is stored: a slow hash protects passwords, and 256 random bits cannot be guessed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use app::domain::ids::{AttemptNumber, JobId, UserId, WorkerId};
use app::domain::time::Timestamp;

use super::random::Random;

/// Without characters that look alike.
const CODE_ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Creates a new token with this prefix (`wt_`, `st_`, …).
pub fn generate(prefix: &str, random: &dyn Random) -> String {
    encode_token(prefix, &random.bytes::<32>())
}

/// The token of one attempt, derived from the server's key, so that it can be computed again after a restart and is
/// never stored.
pub fn job_token(key: &[u8], job: &JobId, attempt: AttemptNumber) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{job}:{attempt}").as_bytes());
    encode_token("jt_", &mac.finalize().into_bytes())
}

/// The token of the agent on the server's own machine, derived in the same way; each rotation changes `rotation`.
pub fn local_token(key: &[u8], worker: &WorkerId, rotation: &str) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("local agent:{worker}:{rotation}").as_bytes());
    encode_token("wt_", &mac.finalize().into_bytes())
}

/// The cookie of a browser in which a user has signed in: `user.end.number.signature`. It authenticates nothing.
pub fn device_cookie(key: &[u8], user: &UserId, until: Timestamp, number: &[u8; 16]) -> String {
    let payload = format!("{user}.{}.{}", until.0, hex(number));
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("device:{payload}").as_bytes());
    format!("{payload}.{}", hex(&mac.finalize().into_bytes()))
}

/// Returns the user and the number of a browser's cookie, if it is signed with this key and has not expired.
pub fn verify_device_cookie<'t>(key: &[u8], text: &'t str, now: Timestamp) -> Option<(UserId, &'t str)> {
    let mut parts = text.split('.');
    let (user, until, number) = (parts.next()?, parts.next()?, parts.next()?);
    let (user, until) = (UserId::parse(user).ok()?, Timestamp(until.parse().ok()?));
    let bytes: [u8; 16] = from_hex(number)?.try_into().ok()?;
    let has_valid_signature = device_cookie(key, &user, until, &bytes).as_bytes().ct_eq(text.as_bytes());
    (bool::from(has_valid_signature) && until > now).then_some((user, number))
}

/// The cookie of a pending sign-in: `user.end.signature`. The signature covers the hash of the password, so that a
/// changed password invalidates it.
pub fn pending_login_cookie(key: &[u8], user: &UserId, until: Timestamp, password: &str) -> String {
    let payload = format!("{user}.{}", until.0);
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("pending:{payload}:{}", digest(password)).as_bytes());
    format!("{payload}.{}", hex(&mac.finalize().into_bytes()))
}

/// The claimed user and expiry of a pending sign-in; [`verify_pending_login`] checks them.
pub fn pending_login_user(text: &str) -> Option<(UserId, Timestamp)> {
    let mut parts = text.split('.');
    Some((UserId::parse(parts.next()?).ok()?, Timestamp(parts.next()?.parse().ok()?)))
}

/// Verifies the signature for this user and password.
pub fn verify_pending_login(key: &[u8], text: &str, user: &UserId, until: Timestamp, password: &str) -> bool {
    pending_login_cookie(key, user, until, password).as_bytes().ct_eq(text.as_bytes()).into()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    digits.collect()
}

/// The stored form of a token: its SHA-256 in hex.
pub fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// A recovery code: 24 characters without look-alikes, 120 random bits, so that SHA-256 is sufficient for storage.
pub fn recovery_code(random: &dyn Random) -> String {
    let chars: Vec<char> =
        random.bytes::<24>().iter().map(|byte| CODE_ALPHABET[usize::from(byte % 32)] as char).collect();
    chars.chunks(6).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

/// A setup code that a user types once: eight characters without look-alikes.
pub fn setup_code(random: &dyn Random) -> String {
    let chars: String = random.bytes::<16>().iter().map(|byte| CODE_ALPHABET[usize::from(byte % 32)] as char).collect();
    format!("{}-{}-{}-{}", &chars[..4], &chars[4..8], &chars[8..12], &chars[12..])
}

/// Returns whether prefix and checksum of a token are valid.
pub fn has_valid_checksum(prefix: &str, token: &str) -> bool {
    let Some((body, checksum_digits)) = token.strip_prefix(prefix).and_then(|rest| rest.split_at_checked(43)) else {
        return false;
    };
    checksum_digits == checksum(prefix, body)
}

fn checksum(prefix: &str, body: &str) -> String {
    base62(&Sha256::digest(format!("{prefix}{body}").as_bytes())[..4], 6)
}

fn encode_token(prefix: &str, bytes: &[u8]) -> String {
    let body = base62(bytes, 43);
    format!("{prefix}{body}{}", checksum(prefix, &body))
}

/// Base 62, most significant digit first, padded to `width`.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::with_capacity(width);
    for _ in 0..width {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        digits.push(ALPHABET[remainder as usize] as char);
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::CountingRandom;
    use app::domain::time::Timestamp;

    #[test]
    fn tokens_are_unique_and_well_formed() {
        let random = CountingRandom::default();
        let (first, second) = (generate("wt_", &random), generate("wt_", &random));
        assert_ne!(first, second);
        assert_eq!(first.len(), 3 + 43 + 6);
        assert!(first[3..].bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_eq!(digest(&first).len(), 64);
    }

    #[test]
    fn checksum_detects_typing_errors() {
        let token = generate("wt_", &CountingRandom::default());
        assert!(has_valid_checksum("wt_", &token));
        let mistyped = |index: usize| {
            let mut bytes = token.clone().into_bytes();
            bytes[index] = if bytes[index] == b'x' { b'y' } else { b'x' };
            String::from_utf8(bytes).expect("plain letters")
        };
        assert!((0..token.len()).all(|index| !has_valid_checksum("wt_", &mistyped(index))));
        for other in ["", "wt_", &token[1..], &token[..51], &format!("{token}x"), "wt_ö", &"é".repeat(40)] {
            assert!(!has_valid_checksum("wt_", other), "{other}");
        }
        assert!(!has_valid_checksum("st_", &token));
    }

    #[test]
    fn base_62_of_known_numbers() {
        assert_eq!(base62(&[0, 0, 0, 61], 2), "0z");
        assert_eq!(base62(&[0, 0, 1, 0], 3), "048");
        assert_eq!(base62(&[255; 32], 43).len(), 43);
    }

    #[test]
    fn job_tokens_depend_on_key_job_and_attempt() {
        let job = JobId::new(Timestamp(1), [1; 10]);
        let other = JobId::new(Timestamp(1), [2; 10]);
        let token = job_token(b"key", &job, AttemptNumber(1));
        assert_eq!(token, job_token(b"key", &job, AttemptNumber(1)));
        assert_ne!(token, job_token(b"key", &job, AttemptNumber(2)));
        assert_ne!(token, job_token(b"key", &other, AttemptNumber(1)));
        assert_ne!(token, job_token(b"yek", &job, AttemptNumber(1)));
    }

    #[test]
    fn pending_login_is_bound_to_user_password_and_expiry() {
        let (user, other) = (UserId::new(Timestamp(0), [1; 10]), UserId::new(Timestamp(0), [2; 10]));
        let until = Timestamp(1_000);
        let cookie = pending_login_cookie(b"key", &user, until, "hash");
        assert_eq!(pending_login_user(&cookie), Some((user.clone(), until)));
        assert!(verify_pending_login(b"key", &cookie, &user, until, "hash"));
        assert!(!verify_pending_login(b"other", &cookie, &user, until, "hash"));
        assert!(!verify_pending_login(b"key", &cookie, &other, until, "hash"));
        assert!(!verify_pending_login(b"key", &cookie, &user, Timestamp(2_000), "hash"));
        assert!(!verify_pending_login(b"key", &cookie, &user, until, "changed"));
        assert!(["", ".", "..."].iter().all(|text| pending_login_user(text).is_none()));
    }

    #[test]
    fn recovery_codes_are_unique_without_look_alikes() {
        let random = CountingRandom::default();
        let codes: std::collections::BTreeSet<String> = (0..20).map(|_| recovery_code(&random)).collect();
        assert_eq!(codes.len(), 20);
        assert!(
            codes.iter().all(|code| code.len() == 27 && code.split('-').all(|group| group.len() == 6)),
            "{codes:?}"
        );
    }

    #[test]
    fn device_cookie_is_valid_until_it_expires() {
        let (user, until) = (UserId::new(Timestamp(0), [1; 10]), Timestamp(1_000));
        let cookie = device_cookie(b"key", &user, until, &[7; 16]);
        let number = "07".repeat(16);
        assert_eq!(verify_device_cookie(b"key", &cookie, Timestamp(999)), Some((user.clone(), number.as_str())));
        assert_eq!(verify_device_cookie(b"key", &cookie, until), None);
        assert_eq!(verify_device_cookie(b"other", &cookie, Timestamp(0)), None);
        let later = cookie.replace(".1000.", ".2000.");
        let longer = format!("{cookie}.x");
        for forged in [later.as_str(), &longer, "", "...", &cookie[..cookie.len() - 1], "u_é.1.0.0"] {
            assert_eq!(verify_device_cookie(b"key", forged, Timestamp(0)), None, "{forged}");
        }
    }
}
