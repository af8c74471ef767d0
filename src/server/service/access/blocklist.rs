//! Passwords that are not allowed: the most used of those that breaches have made public, and what the operator adds. Kept as
//! sorted hashes of eight bytes each, so that a list of a million takes 8 MB and refuses one other password in 10^13.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Those of 12 characters or more out of the 100,000 most used (`scripts/breached-passwords`).
pub static BREACHED: LazyLock<Blocklist> = LazyLock::new(|| Blocklist::of(include_str!("breached.txt")));

/// See the module.
#[derive(Debug, Default)]
pub struct Blocklist(Vec<u64>);

impl Blocklist {
    /// Reads a file with one password a line.
    pub fn read(file: &Path) -> Result<Self, String> {
        // Lists of breached passwords are not always UTF-8.
        let bytes = fs::read(file)
            .map_err(|error| format!("the list of passwords {} cannot be read: {error}", file.display()))?;
        Ok(Self::of(&String::from_utf8_lossy(&bytes)))
    }

    /// Reads the lines of a text.
    pub fn of(text: &str) -> Self {
        let mut hashes: Vec<u64> = text.lines().filter(|line| !line.is_empty()).map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    /// Whether the list has this password, in upper or lower case.
    pub fn has(&self, password: &str) -> bool {
        !self.0.is_empty() && self.0.binary_search(&hash(password)).is_ok()
    }
}

fn hash(password: &str) -> u64 {
    let digest = Sha256::digest(password.to_lowercase().as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_line_by_line_whatever_the_case() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("list");
        fs::write(&file, b"Winter in Berlin\r\nacme-corp-2024\n\n\xff\xfe\n").expect("written");
        let list = Blocklist::read(&file).expect("readable");
        assert!(list.has("winter in berlin") && list.has("ACME-corp-2024"));
        assert!(!list.has("") && !list.has("winter in bern") && !Blocklist::default().has("acme-corp-2024"));
        assert!(Blocklist::read(&directory.path().join("none")).is_err_and(|why| why.contains("none")));
    }

    #[test]
    fn what_breaches_have_made_public_is_known_whatever_the_case() {
        assert!(include_str!("breached.txt").lines().count() > 1_000);
        for password in ["111222tianya", "110331rahili", "111222Tianya"] {
            assert!(BREACHED.has(password), "{password}");
        }
        assert!(!BREACHED.has("correct-horse-battery"));
    }
}
