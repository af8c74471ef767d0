//! Where secrets for jobs are sealed: AES-256-GCM under a key that is kept beside the data directory, not in it, so that
//! a copy of the one does not open the other.
//!
//! A sealed value is bound to whose it is and to its name: put into another row, it does not open.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::files::key;
use crate::random::Random;
use crate::tokens::{digest, hex};

/// See the module.
pub struct Vault {
    path: PathBuf,
    key: OnceLock<Key>,
    /// Held while a key is made, so that two first secrets make one.
    making: Mutex<()>,
}

struct Key {
    id: String,
    aead: LessSafeKey,
}

/// A value that nobody reads without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Which key opens it.
    pub key_id: String,
    /// The nonce and the ciphertext, in hex.
    pub text: String,
}

/// Why a value cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// The key's file cannot be read or made.
    NoKey {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It was sealed with another key.
    OtherKey {
        /// Where the present key is.
        path: PathBuf,
    },
    /// What is kept is not what was sealed.
    Damaged,
}

impl Vault {
    /// With the key of this file, which is made when the first secret is kept.
    pub fn at(path: PathBuf) -> Self {
        Self { path, key: OnceLock::new(), making: Mutex::default() }
    }

    /// Seals a value for its owner and name.
    pub fn seal(&self, random: &dyn Random, owner: &str, name: &str, value: &str) -> Result<Sealed, Locked> {
        let key = self.key_or_new(random)?;
        let nonce: [u8; NONCE_LEN] = random.bytes();
        let mut bytes = value.as_bytes().to_vec();
        let context = context(owner, name);
        let tag = key.aead.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), context, &mut bytes);
        let tag = tag.map_err(|_| self.no_key("the value is too long for it"))?;
        let text = format!("{}{}{}", hex(&nonce), hex(&bytes), hex(tag.as_ref()));
        Ok(Sealed { key_id: key.id.clone(), text })
    }

    /// Opens what was sealed for this owner and name.
    pub fn open(&self, owner: &str, name: &str, sealed: &Sealed) -> Result<String, Locked> {
        let key = self.key()?;
        if key.id != sealed.key_id {
            return Err(Locked::OtherKey { path: self.path.clone() });
        }
        let bytes = unhex(&sealed.text).filter(|bytes| bytes.len() > NONCE_LEN).ok_or(Locked::Damaged)?;
        let (nonce, rest) = bytes.split_at(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Locked::Damaged)?;
        let mut rest = rest.to_vec();
        let plain = key.aead.open_in_place(nonce, context(owner, name), &mut rest).map_err(|_| Locked::Damaged)?;
        String::from_utf8(plain.to_vec()).map_err(|_| Locked::Damaged)
    }

    fn key_or_new(&self, random: &dyn Random) -> Result<&Key, Locked> {
        let _turn = self.making.lock().expect("no panic while it is held");
        if !self.path.exists() && self.key.get().is_none() {
            key::leave(&self.path, &random.bytes()).map_err(|error| self.no_key(&error.to_string()))?;
        }
        self.key()
    }

    fn key(&self) -> Result<&Key, Locked> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let text = fs::read_to_string(&self.path).map_err(|error| self.no_key(&error.to_string()))?;
        let bytes = unhex(text.trim()).filter(|bytes| bytes.len() == 32);
        let bytes = bytes.ok_or_else(|| self.no_key("it is not 64 hexadecimal digits"))?;
        let unbound = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| self.no_key("it is no key"))?;
        let id = digest(text.trim())[..16].to_owned();
        Ok(self.key.get_or_init(|| Key { id, aead: LessSafeKey::new(unbound) }))
    }

    fn no_key(&self, why: &str) -> Locked {
        Locked::NoKey { path: self.path.clone(), why: why.to_owned() }
    }
}

/// What a sealed value is bound to. A name has no line breaks, so no two read alike.
fn context(owner: &str, name: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{owner}\n{name}").into_bytes())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: char| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = text.chars().map(digit).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::random::CountedRandom;

    #[test]
    fn only_the_same_key_owner_and_name_open_it() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, random) = (directory.path().join("data.key"), CountedRandom::default());
        let vault = Vault::at(path.clone());
        let sealed = vault.seal(&random, "ada", "HF_TOKEN", "hf_secret_value").expect("a key is made");
        assert!(!sealed.text.contains(&hex(b"hf_secret")));
        assert_ne!(vault.seal(&random, "ada", "HF_TOKEN", "hf_secret_value").expect("again").text, sealed.text);
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
        let open = |vault: &Vault, owner: &str, name: &str| vault.open(owner, name, &sealed);
        assert_eq!(open(&Vault::at(path.clone()), "ada", "HF_TOKEN"), Ok("hf_secret_value".to_owned()));
        assert_eq!(open(&vault, "eve", "HF_TOKEN"), Err(Locked::Damaged));
        assert_eq!(open(&vault, "ada", "WANDB_API_KEY"), Err(Locked::Damaged));
        for text in [String::new(), "xx".to_owned(), sealed.text[2..].to_owned(), format!("{}00", sealed.text)] {
            assert_eq!(vault.open("ada", "HF_TOKEN", &Sealed { text, ..sealed.clone() }), Err(Locked::Damaged));
        }
        let other = Vault::at(directory.path().join("other.key"));
        assert!(matches!(open(&other, "ada", "HF_TOKEN"), Err(Locked::NoKey { .. })));
        other.seal(&random, "ada", "X_KEY", "x").expect("a key is made");
        assert!(matches!(open(&other, "ada", "HF_TOKEN"), Err(Locked::OtherKey { .. })));
        Ok(())
    }

    #[test]
    fn no_changed_digit_of_a_sealed_value_goes_unnoticed() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let vault = Vault::at(directory.path().join("data.key"));
        let sealed =
            vault.seal(&CountedRandom::default(), "ada", "HF_TOKEN", "hf_secret_value").expect("a key is made");
        for at in 0..sealed.text.len() {
            let other = if sealed.text[at..].starts_with('0') { "1" } else { "0" };
            let mut text = sealed.text.clone();
            text.replace_range(at..=at, other);
            let changed = Sealed { text, ..sealed.clone() };
            assert_eq!(vault.open("ada", "HF_TOKEN", &changed), Err(Locked::Damaged), "digit {at}");
        }
        Ok(())
    }

    #[test]
    fn a_key_that_is_none_is_never_replaced() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("data.key");
        fs::write(&path, "not a key")?;
        let refused = Vault::at(path.clone()).seal(&CountedRandom::default(), "", "A_KEY", "value");
        assert!(matches!(refused, Err(Locked::NoKey { why, .. }) if why.contains("64 hexadecimal")));
        assert_eq!(fs::read_to_string(path)?, "not a key");
        Ok(())
    }
}
