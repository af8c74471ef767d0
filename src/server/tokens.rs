//! Secrets that people and agents carry: a prefix, 256 random bits in base 62, and a checksum.
//!
//! The prefix and the checksum let scanners and typing errors be recognised without asking the database.
//! Only the SHA-256 of a token is kept: with so much randomness, nothing slower is needed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use app::domain::ids::{Attempt, JobId, UserId, WorkerId};
use app::domain::time::Timestamp;

use super::random::Random;

/// Without look-alikes.
const EASY: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes a new token with this prefix (`wt_`, `st_`, …).
pub fn mint(prefix: &str, random: &dyn Random) -> String {
    sealed(prefix, &random.bytes::<32>())
}

/// The token of one attempt, derived from the server's key, so that it can be told again after a restart
/// and is nowhere at rest.
pub fn job_token(key: &[u8], job: &JobId, attempt: Attempt) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{job}:{attempt}").as_bytes());
    sealed("jt_", &mac.finalize().into_bytes())
}

/// The token of the agent on the server's own machine, derived like those; a rotation gives the worker another `turn`.
pub fn local_token(key: &[u8], worker: &WorkerId, turn: &str) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("local agent:{worker}:{turn}").as_bytes());
    sealed("wt_", &mac.finalize().into_bytes())
}

/// What a browser keeps in which a person has logged in: `user.end.number.signature`. It opens nothing.
pub fn device(key: &[u8], user: &UserId, until: Timestamp, number: &[u8; 16]) -> String {
    let said = format!("{user}.{}.{}", until.0, hex(number));
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("device:{said}").as_bytes());
    format!("{said}.{}", hex(&mac.finalize().into_bytes()))
}

/// Whose browser it is, and its number, if it was signed with this key and has not ended.
pub fn known_device<'t>(key: &[u8], text: &'t str, now: Timestamp) -> Option<(UserId, &'t str)> {
    let mut parts = text.split('.');
    let (user, until, number) = (parts.next()?, parts.next()?, parts.next()?);
    let (user, until) = (UserId::parse(user).ok()?, Timestamp(until.parse().ok()?));
    let bytes: [u8; 16] = from_hex(number)?.try_into().ok()?;
    let same = device(key, &user, until, &bytes).as_bytes().ct_eq(text.as_bytes());
    (bool::from(same) && until > now).then_some((user, number))
}

/// What a browser keeps while the code of the second factor is awaited: `user.end.signature`. The signature covers what is
/// kept of the password, so that a changed one ends it.
pub fn pending(key: &[u8], user: &UserId, until: Timestamp, password: &str) -> String {
    let said = format!("{user}.{}", until.0);
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("pending:{said}:{}", digest(password)).as_bytes());
    format!("{said}.{}", hex(&mac.finalize().into_bytes()))
}

/// Whose login it says it is, and its end; whether that is so, [`is_pending`] knows.
pub fn pending_user(text: &str) -> Option<(UserId, Timestamp)> {
    let mut parts = text.split('.');
    Some((UserId::parse(parts.next()?).ok()?, Timestamp(parts.next()?.parse().ok()?)))
}

/// Whether it was signed with this key, for this person and password.
pub fn is_pending(key: &[u8], text: &str, user: &UserId, until: Timestamp, password: &str) -> bool {
    pending(key, user, until, password).as_bytes().ct_eq(text.as_bytes()).into()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    digits.collect()
}

/// What is kept of a token: its SHA-256 in hex.
pub fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// A recovery code: 24 characters without look-alikes, 120 random bits, so that SHA-256 is enough to keep it.
pub fn recovery_code(random: &dyn Random) -> String {
    let chars: Vec<char> = random.bytes::<24>().iter().map(|byte| EASY[usize::from(byte % 32)] as char).collect();
    chars.chunks(6).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

/// A code that a person types once: eight characters without look-alikes.
pub fn setup_code(random: &dyn Random) -> String {
    let chars: String = random.bytes::<16>().iter().map(|byte| EASY[usize::from(byte % 32)] as char).collect();
    format!("{}-{}-{}-{}", &chars[..4], &chars[4..8], &chars[8..12], &chars[12..])
}

/// Whether a token with this prefix was made here: without a typing error, as far as its checksum tells.
pub fn is_whole(prefix: &str, token: &str) -> bool {
    let Some((body, sum)) = token.strip_prefix(prefix).and_then(|rest| rest.split_at_checked(43)) else { return false };
    sum == checksum(prefix, body)
}

fn checksum(prefix: &str, body: &str) -> String {
    base62(&Sha256::digest(format!("{prefix}{body}").as_bytes())[..4], 6)
}

fn sealed(prefix: &str, bytes: &[u8]) -> String {
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
    use crate::random::CountedRandom;
    use app::domain::time::Timestamp;

    #[test]
    fn tokens_differ_and_have_their_form() {
        let random = CountedRandom::default();
        let (one, two) = (mint("wt_", &random), mint("wt_", &random));
        assert_ne!(one, two);
        assert_eq!(one.len(), 3 + 43 + 6);
        assert!(one[3..].bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_eq!(digest(&one).len(), 64);
    }

    #[test]
    fn a_typing_error_is_seen() {
        let token = mint("wt_", &CountedRandom::default());
        assert!(is_whole("wt_", &token));
        let mistyped = |place: usize| {
            let mut bytes = token.clone().into_bytes();
            bytes[place] = if bytes[place] == b'x' { b'y' } else { b'x' };
            String::from_utf8(bytes).expect("plain letters")
        };
        assert!((0..token.len()).all(|place| !is_whole("wt_", &mistyped(place))));
        for other in ["", "wt_", &token[1..], &token[..51], &format!("{token}x"), "wt_ö", &"é".repeat(40)] {
            assert!(!is_whole("wt_", other), "{other}");
        }
        assert!(!is_whole("st_", &token));
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
        let token = job_token(b"key", &job, Attempt(1));
        assert_eq!(token, job_token(b"key", &job, Attempt(1)));
        assert_ne!(token, job_token(b"key", &job, Attempt(2)));
        assert_ne!(token, job_token(b"key", &other, Attempt(1)));
        assert_ne!(token, job_token(b"yek", &job, Attempt(1)));
    }

    #[test]
    fn a_pending_login_is_of_one_person_and_password_until_its_end() {
        let (user, other) = (UserId::new(Timestamp(0), [1; 10]), UserId::new(Timestamp(0), [2; 10]));
        let until = Timestamp(1_000);
        let cookie = pending(b"key", &user, until, "hash");
        assert_eq!(pending_user(&cookie), Some((user.clone(), until)));
        assert!(is_pending(b"key", &cookie, &user, until, "hash"));
        assert!(!is_pending(b"other", &cookie, &user, until, "hash"));
        assert!(!is_pending(b"key", &cookie, &other, until, "hash"));
        assert!(!is_pending(b"key", &cookie, &user, Timestamp(2_000), "hash"));
        assert!(!is_pending(b"key", &cookie, &user, until, "changed"));
        assert!(["", ".", "..."].iter().all(|text| pending_user(text).is_none()));
    }

    #[test]
    fn recovery_codes_can_be_read_out_and_differ() {
        let random = CountedRandom::default();
        let codes: std::collections::BTreeSet<String> = (0..20).map(|_| recovery_code(&random)).collect();
        assert_eq!(codes.len(), 20);
        assert!(
            codes.iter().all(|code| code.len() == 27 && code.split('-').all(|group| group.len() == 6)),
            "{codes:?}"
        );
    }

    #[test]
    fn a_device_is_known_by_its_signature_until_its_end() {
        let (user, until) = (UserId::new(Timestamp(0), [1; 10]), Timestamp(1_000));
        let cookie = device(b"key", &user, until, &[7; 16]);
        let number = "07".repeat(16);
        assert_eq!(known_device(b"key", &cookie, Timestamp(999)), Some((user.clone(), number.as_str())));
        assert_eq!(known_device(b"key", &cookie, until), None);
        assert_eq!(known_device(b"other", &cookie, Timestamp(0)), None);
        let later = cookie.replace(".1000.", ".2000.");
        let longer = format!("{cookie}.x");
        for forged in [later.as_str(), &longer, "", "...", &cookie[..cookie.len() - 1], "u_é.1.0.0"] {
            assert_eq!(known_device(b"key", forged, Timestamp(0)), None, "{forged}");
        }
    }
}
