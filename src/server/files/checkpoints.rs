//! What makes a forged audit trail be found: a key beside the database, and a file of what was signed with it.
//!
//! The file is only ever appended to. It, and the key, can be kept where nobody gets at them who can write the database.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use app::domain::audit::verify::Signed;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;

use crate::tokens::hex;

const KEY: &str = "audit.key";
const FILE: &str = "audit-checkpoints.jsonl";

/// See the module.
pub struct Checkpoints {
    key: Vec<u8>,
    key_id: String,
    /// Which of the databases that the directory may serve: the chains of one are not in the other.
    database: &'static str,
    file: PathBuf,
}

/// A line of the file, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    database: String,
    chain: String,
    seq: i64,
    hash: String,
    key: String,
    mac: String,
}

impl Checkpoints {
    /// Those of a data directory; its first server leaves this key there for all that come after.
    pub fn open(directory: &Path, database: &'static str, new_key: [u8; 32]) -> io::Result<Self> {
        let key = directory.join(KEY);
        if !key.exists() {
            super::key::leave(&key, &new_key)?;
        }
        Self::with_key(&key, directory, database)
    }

    /// Those of a data directory, if there is a key.
    pub fn find(directory: &Path, database: &'static str) -> io::Result<Option<Self>> {
        match Self::with_key(&directory.join(KEY), directory, database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    fn with_key(key: &Path, directory: &Path, database: &'static str) -> io::Result<Self> {
        let key = fs::read_to_string(key)?.trim().as_bytes().to_vec();
        if key.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{KEY} is empty")));
        }
        let key_id = keyed(&key, "key id")[..8].to_owned();
        Ok(Self { key, key_id, database, file: directory.join(FILE) })
    }

    /// Tells keys apart, and tells nothing of the key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Which database's chains are signed.
    pub fn database(&self) -> &'static str {
        self.database
    }

    /// The signature of an entry, by its chain, number and hash.
    pub fn mac(&self, chain: &str, seq: i64, hash: &str) -> String {
        keyed(&self.key, &format!("checkpoint {} {chain} {seq} {hash}", chain.len()))
    }

    /// Appends a line, and returns when it is on disk.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// What the file says was signed with this key in this database, and the numbers of lines that are not what was appended.
    pub fn signed(&self) -> io::Result<(Signed, Vec<usize>)> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let (mut signed, mut broken) = (Signed::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            match serde_json::from_str::<Line>(line) {
                Ok(line) if line.key != self.key_id || line.database != self.database => {}
                Ok(line) if line.mac == self.mac(&line.chain, line.seq, &line.hash) => {
                    signed.entry(line.chain).or_default().insert(line.seq, line.hash);
                }
                _ => broken.push(number),
            }
        }
        Ok((signed, broken))
    }
}

fn keyed(key: &[u8], text: &str) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_key_stays_and_is_nobody_elses() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert!(Checkpoints::find(directory.path(), "sqlite").expect("readable").is_none());
        let first = Checkpoints::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let second = Checkpoints::open(directory.path(), "sqlite", [2; 32]).expect("writable");
        assert_eq!((first.key_id(), &first.key), (second.key_id(), &second.key));
        let mode = fs::metadata(directory.path().join(KEY)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "no draft is left");
    }

    #[test]
    fn lines_count_if_the_key_has_signed_them() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = Checkpoints::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let of = |database: &str, key: &str, seq: i64, mac: String| {
            format!(
                r#"{{"database": "{database}", "chain": "c", "seq": {seq}, "hash": "h", "key": "{key}", "mac": "{mac}"}}"#
            )
        };
        let line = |key: &str, seq: i64, mac: String| of("sqlite", key, seq, mac);
        assert_eq!(files.signed().expect("no file yet"), (Signed::new(), vec![]));
        files.append(&line(files.key_id(), 3, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line(files.key_id(), 4, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line("other", 5, String::new())).expect("writable");
        files.append(&of("postgres", files.key_id(), 6, String::new())).expect("writable");
        files.append("torn").expect("writable");
        let (signed, broken) = files.signed().expect("readable");
        assert_eq!(signed, [("c".to_owned(), [(3, "h".to_owned())].into())].into());
        assert_eq!(broken, [2, 5]);
    }
}
