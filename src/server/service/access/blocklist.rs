//! Passwords that are not allowed: the most used ones of public breaches, and those of the operator's file. Stored as
//! sorted 8-byte hashes: a million take 8 MB, with one false positive in 10^13.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The passwords of 12 characters or more among the 100,000 most used ones (`scripts/breached-passwords`).
pub static BREACHED_PASSWORDS: LazyLock<Blocklist> = LazyLock::new(|| Blocklist::parse(include_str!("breached.txt")));

#[derive(Debug, Default)]
pub struct Blocklist(Vec<u64>);

impl Blocklist {
    /// Reads a file with one password per line.
    pub fn load(file: &Path) -> Result<Self, String> {
        // Lists of breached passwords are not always UTF-8.
        let bytes =
            fs::read(file).map_err(|error| format!("failed to read the password list {}: {error}", file.display()))?;
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Parses one password per line, ignoring case.
    pub fn parse(text: &str) -> Self {
        let mut hashes: Vec<u64> = text.lines().filter(|line| !line.is_empty()).map(password_hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    pub fn contains(&self, password: &str) -> bool {
        !self.0.is_empty() && self.0.binary_search(&password_hash(password)).is_ok()
    }
}

fn password_hash(password: &str) -> u64 {
    let digest = Sha256::digest(password.to_lowercase().as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocklist_is_read_by_line_and_ignores_case() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("list");
        fs::write(&file, b"Winter in Berlin\r\nacme-corp-2024\n\n\xff\xfe\n").expect("written");
        let list = Blocklist::load(&file).expect("readable");
        assert!(list.contains("winter in berlin") && list.contains("ACME-corp-2024"));
        assert!(
            !list.contains("") && !list.contains("winter in bern") && !Blocklist::default().contains("acme-corp-2024")
        );
        assert!(Blocklist::load(&directory.path().join("none")).is_err_and(|error| error.contains("none")));
    }

    #[test]
    fn breached_passwords_are_listed_in_any_case() {
        assert!(include_str!("breached.txt").lines().count() > 1_000);
        for password in ["111222tianya", "110331rahili", "111222Tianya"] {
            assert!(BREACHED_PASSWORDS.contains(password), "{password}");
        }
        assert!(!BREACHED_PASSWORDS.contains("correct-horse-battery"));
    }
}
