//! Passwords that the operator does not allow: from breaches, or words of the company. Kept as sorted hashes of eight
//! bytes each, so that a list of a million takes 8 MB.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

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
}
