//! Encryption of job secrets: AES-256-GCM with a key beside the data directory, not in it, so that a copy of one does
//! not reveal the other.
//!
//! An encrypted value is bound to its owner and name: in another row, it cannot be decrypted.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::files::key_file;
use crate::random::Random;
use crate::tokens::{digest, hex};

pub struct Vault {
    path: PathBuf,
    key: OnceLock<Key>,
    /// Held while a key is created, so that two first secrets share one.
    creation_lock: Mutex<()>,
}

struct Key {
    id: String,
    aead: LessSafeKey,
}

/// An encrypted value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Identifies the key.
    pub key_id: String,
    /// The nonce and the ciphertext, in hex.
    pub text: String,
}

/// Why a value cannot be encrypted or decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultError {
    /// The key's file cannot be read or created.
    NoKey {
        /// The expected path.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// The value was encrypted with another key.
    OtherKey {
        /// The path of the current key.
        path: PathBuf,
    },
    /// The stored value is not what was encrypted.
    Corrupt,
}

impl Vault {
    /// Uses the key of this file, which is created with the first secret.
    pub fn new(path: PathBuf) -> Self {
        Self { path, key: OnceLock::new(), creation_lock: Mutex::default() }
    }

    /// Encrypts a value for its owner and name.
    pub fn seal(&self, random: &dyn Random, owner: &str, name: &str, value: &str) -> Result<Sealed, VaultError> {
        let key = self.load_or_create_key(random)?;
        let nonce: [u8; NONCE_LEN] = random.bytes();
        let mut bytes = value.as_bytes().to_vec();
        let context = associated_data(owner, name);
        let tag = key.aead.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), context, &mut bytes);
        let tag = tag.map_err(|_| self.key_error("the value is too long"))?;
        let text = format!("{}{}{}", hex(&nonce), hex(&bytes), hex(tag.as_ref()));
        Ok(Sealed { key_id: key.id.clone(), text })
    }

    /// Decrypts a value of this owner and name.
    pub fn open(&self, owner: &str, name: &str, sealed: &Sealed) -> Result<String, VaultError> {
        let key = self.load_key()?;
        if key.id != sealed.key_id {
            return Err(VaultError::OtherKey { path: self.path.clone() });
        }
        let bytes = decode_hex(&sealed.text).filter(|bytes| bytes.len() > NONCE_LEN).ok_or(VaultError::Corrupt)?;
        let (nonce, rest) = bytes.split_at(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Corrupt)?;
        let mut rest = rest.to_vec();
        let plain =
            key.aead.open_in_place(nonce, associated_data(owner, name), &mut rest).map_err(|_| VaultError::Corrupt)?;
        String::from_utf8(plain.to_vec()).map_err(|_| VaultError::Corrupt)
    }

    fn load_or_create_key(&self, random: &dyn Random) -> Result<&Key, VaultError> {
        let _lock = self.creation_lock.lock().expect("no panic while it is held");
        if !self.path.exists() && self.key.get().is_none() {
            key_file::write_key_if_absent(&self.path, &random.bytes())
                .map_err(|error| self.key_error(&error.to_string()))?;
        }
        self.load_key()
    }

    fn load_key(&self) -> Result<&Key, VaultError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let text = fs::read_to_string(&self.path).map_err(|error| self.key_error(&error.to_string()))?;
        let bytes = decode_hex(text.trim()).filter(|bytes| bytes.len() == 32);
        let bytes = bytes.ok_or_else(|| self.key_error("not 64 hexadecimal digits"))?;
        let unbound = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| self.key_error("not a valid key"))?;
        let id = digest(text.trim())[..16].to_owned();
        Ok(self.key.get_or_init(|| Key { id, aead: LessSafeKey::new(unbound) }))
    }

    fn key_error(&self, why: &str) -> VaultError {
        VaultError::NoKey { path: self.path.clone(), why: why.to_owned() }
    }
}

/// The associated data of an encrypted value. A name has no line breaks, so the data is unique.
fn associated_data(owner: &str, name: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{owner}\n{name}").into_bytes())
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
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
    use crate::random::CountingRandom;

    #[test]
    fn value_is_bound_to_key_owner_and_name() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (path, random) = (directory.path().join("data.key"), CountingRandom::default());
        let vault = Vault::new(path.clone());
        let sealed = vault.seal(&random, "ada", "HF_TOKEN", "hf_secret_value").expect("a key is created");
        assert!(!sealed.text.contains(&hex(b"hf_secret")));
        assert_ne!(vault.seal(&random, "ada", "HF_TOKEN", "hf_secret_value").expect("again").text, sealed.text);
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
        let open = |vault: &Vault, owner: &str, name: &str| vault.open(owner, name, &sealed);
        assert_eq!(open(&Vault::new(path.clone()), "ada", "HF_TOKEN"), Ok("hf_secret_value".to_owned()));
        assert_eq!(open(&vault, "eve", "HF_TOKEN"), Err(VaultError::Corrupt));
        assert_eq!(open(&vault, "ada", "WANDB_API_KEY"), Err(VaultError::Corrupt));
        for text in [String::new(), "xx".to_owned(), sealed.text[2..].to_owned(), format!("{}00", sealed.text)] {
            assert_eq!(vault.open("ada", "HF_TOKEN", &Sealed { text, ..sealed.clone() }), Err(VaultError::Corrupt));
        }
        let other = Vault::new(directory.path().join("other.key"));
        assert!(matches!(open(&other, "ada", "HF_TOKEN"), Err(VaultError::NoKey { .. })));
        other.seal(&random, "ada", "X_KEY", "x").expect("a key is created");
        assert!(matches!(open(&other, "ada", "HF_TOKEN"), Err(VaultError::OtherKey { .. })));
        Ok(())
    }

    #[test]
    fn any_changed_digit_fails_decryption() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let vault = Vault::new(directory.path().join("data.key"));
        let sealed =
            vault.seal(&CountingRandom::default(), "ada", "HF_TOKEN", "hf_secret_value").expect("a key is created");
        for at in 0..sealed.text.len() {
            let other = if sealed.text[at..].starts_with('0') { "1" } else { "0" };
            let mut text = sealed.text.clone();
            text.replace_range(at..=at, other);
            let changed = Sealed { text, ..sealed.clone() };
            assert_eq!(vault.open("ada", "HF_TOKEN", &changed), Err(VaultError::Corrupt), "digit {at}");
        }
        Ok(())
    }

    #[test]
    fn invalid_key_file_is_never_replaced() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("data.key");
        fs::write(&path, "not a key")?;
        let result = Vault::new(path.clone()).seal(&CountingRandom::default(), "", "A_KEY", "value");
        assert!(matches!(result, Err(VaultError::NoKey { why, .. }) if why.contains("64 hexadecimal")));
        assert_eq!(fs::read_to_string(path)?, "not a key");
        Ok(())
    }
}
