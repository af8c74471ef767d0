//! Detection of a forged audit log: a key beside the database, and a file of signatures made with it.
//!
//! The file is append-only. It and the key can be stored out of reach of everyone with write access to the database.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use app::domain::audit::verify::trust::RetentionAnchors;
use app::domain::audit::verify::{EntryRef, SignedHashes};
use app::domain::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;
use tokio::sync::Notify;

use crate::tokens::hex;

const KEY_FILE: &str = "audit.key";
const CHECKPOINTS_FILE: &str = "audit-checkpoints.jsonl";

pub struct AuditCheckpointFile {
    key: Vec<u8>,
    key_id: String,
    /// Which of the databases that the directory may serve: each has its own chains.
    database: &'static str,
    file: PathBuf,
    appended: Notify,
}

/// A line of the file, as far as it is used here.
#[derive(Deserialize)]
struct SignedLine {
    /// What is signed; an earlier version signed checkpoints only, without this field.
    #[serde(default)]
    kind: SignedLineKind,
    database: String,
    chain: String,
    seq: i64,
    hash: String,
    key: String,
    mac: String,
}

/// What a line signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedLineKind {
    /// An entry, and so its chain up to it.
    #[default]
    Checkpoint,
    /// The last entry of a chain whose server has ended.
    Closed,
    /// That retention removed the entries up to this one.
    Removed,
    /// That every chain and anchor that is not in the file was created after this line.
    Complete,
}

impl SignedLineKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Closed => "closed",
            Self::Removed => "removed",
            Self::Complete => "complete",
        }
    }
}

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignedLines {
    /// The hashes of signed entries.
    pub signed: SignedHashes,
    /// The last entries of chains whose servers have ended.
    pub closed: BTreeMap<String, i64>,
    /// The last entries that retention has removed.
    pub anchors: RetentionAnchors,
    /// Whether all chains and anchors are included; an earlier version wrote no anchors.
    pub is_complete: bool,
    /// The numbers of lines that were not written by a server.
    pub invalid_lines: Vec<usize>,
}

impl AuditCheckpointFile {
    /// Opens the key and file of a data directory; its first server creates this key for all later ones.
    pub fn open(directory: &Path, database: &'static str, new_key: [u8; 32]) -> io::Result<Self> {
        let key = directory.join(KEY_FILE);
        if !key.exists() {
            super::key_file::write_key_if_absent(&key, &new_key)?;
        }
        Self::load(&key, directory, database)
    }

    /// Opens the key and file of a data directory, if there is a key.
    pub fn find(directory: &Path, database: &'static str) -> io::Result<Option<Self>> {
        match Self::load(&directory.join(KEY_FILE), directory, database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            result => result.map(Some),
        }
    }

    fn load(key: &Path, directory: &Path, database: &'static str) -> io::Result<Self> {
        let key = fs::read_to_string(key)?.trim().as_bytes().to_vec();
        if key.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{KEY_FILE} is empty")));
        }
        let key_id = hmac_hex(&key, "key id")[..8].to_owned();
        Ok(Self { key, key_id, database, file: directory.join(CHECKPOINTS_FILE), appended: Notify::new() })
    }

    /// Identifies the key without revealing it.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    pub fn database(&self) -> &'static str {
        self.database
    }

    /// The signature of an entry, by its chain, sequence number and hash.
    pub fn mac(&self, chain: &str, seq: i64, hash: &str) -> String {
        self.mac_for(SignedLineKind::Checkpoint, chain, seq, hash)
    }

    fn mac_for(&self, kind: SignedLineKind, chain: &str, seq: i64, hash: &str) -> String {
        hmac_hex(&self.key, &format!("{} {} {chain} {seq} {hash}", kind.as_str(), chain.len()))
    }

    /// Creates a signed line.
    pub fn signed_line(&self, at: Timestamp, kind: SignedLineKind, chain: &str, entry: &EntryRef) -> String {
        let EntryRef { seq, hash } = entry;
        let line = json!({
            "at": at,
            "kind": kind.as_str(),
            "database": self.database,
            "chain": chain,
            "seq": seq,
            "hash": hash,
            "key": self.key_id,
            "mac": self.mac_for(kind, chain, *seq, hash),
        });
        line.to_string()
    }

    /// Appends a line, and returns when it is on disk.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.file)?;
        // A line may be incomplete after a power failure.
        let is_torn = file.metadata()?.len().checked_sub(1).is_some_and(|last| {
            let mut byte = [0];
            file.read_exact_at(&mut byte, last).is_ok() && byte != *b"\n"
        });
        file.write_all(format!("{}{line}\n", if is_torn { "\n" } else { "" }).as_bytes())?;
        file.sync_data()?;
        self.appended.notify_waiters();
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Notifies when a line was appended.
    pub fn appended(&self) -> &Notify {
        &self.appended
    }

    /// Reads what was signed with this key for this database.
    pub fn read_signed(&self) -> io::Result<SignedLines> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let has_our_key = |line: &SignedLine| line.key == self.key_id;
        let is_signed = |line: &SignedLine| line.mac == self.mac_for(line.kind, &line.chain, line.seq, &line.hash);
        Ok(parse_lines(&text, self.database, has_our_key, is_signed))
    }
}

/// Parses shipped lines, which were stored out of reach: each may have a prefix of a log collector. They count
/// whatever key has signed them.
pub fn parse_shipped(text: &str, database: &str) -> SignedLines {
    let json_lines: Vec<&str> = text.lines().map(|line| line.find('{').map_or(line, |at| &line[at..])).collect();
    parse_lines(&json_lines.join("\n"), database, |_| true, |_| true)
}

fn parse_lines(
    text: &str,
    database: &str,
    has_our_key: impl Fn(&SignedLine) -> bool,
    is_signed: impl Fn(&SignedLine) -> bool,
) -> SignedLines {
    let mut signed_lines = SignedLines::default();
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str::<SignedLine>(line) {
            Ok(line) if line.database != database || !has_our_key(&line) => {}
            Ok(line) if is_signed(&line) => signed_lines.add(line),
            // A power failure has left a part of it. To cut off a line achieves no more than to remove it.
            Err(error) if error.is_eof() || line.contains('\0') => {}
            _ => signed_lines.invalid_lines.push(number),
        }
    }
    signed_lines
}

impl SignedLines {
    fn add(&mut self, line: SignedLine) {
        let SignedLine { kind, chain, seq, hash, .. } = line;
        match kind {
            SignedLineKind::Checkpoint => drop(self.signed.entry(chain).or_default().insert(seq, hash)),
            SignedLineKind::Closed => {
                self.closed.insert(chain.clone(), seq);
                self.signed.entry(chain).or_default().insert(seq, hash);
            }
            SignedLineKind::Removed => drop(self.anchors.entry(chain).or_default().insert(EntryRef { seq, hash })),
            SignedLineKind::Complete => self.is_complete = true,
        }
    }
}

fn hmac_hex(key: &[u8], text: &str) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn first_key_stays_and_is_private() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert!(AuditCheckpointFile::find(directory.path(), "sqlite").expect("readable").is_none());
        let first = AuditCheckpointFile::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let second = AuditCheckpointFile::open(directory.path(), "sqlite", [2; 32]).expect("writable");
        assert_eq!((first.key_id(), &first.key), (second.key_id(), &second.key));
        let mode = fs::metadata(directory.path().join(KEY_FILE)).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "no draft is left");
    }

    #[test]
    fn only_lines_signed_with_the_key_count() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = AuditCheckpointFile::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let database_line = |database: &str, key: &str, seq: i64, mac: String| {
            format!(
                r#"{{"database": "{database}", "chain": "c", "seq": {seq}, "hash": "h", "key": "{key}", "mac": "{mac}"}}"#
            )
        };
        let line = |key: &str, seq: i64, mac: String| database_line("sqlite", key, seq, mac);
        assert_eq!(files.read_signed().expect("no file yet"), SignedLines::default());
        files.append(&line(files.key_id(), 3, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line(files.key_id(), 4, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line("other", 5, String::new())).expect("writable");
        files.append(&database_line("postgres", files.key_id(), 6, String::new())).expect("writable");
        files.append("torn").expect("writable");
        let found = files.read_signed().expect("readable");
        assert_eq!(found.signed, [("c".to_owned(), [(3, "h".to_owned())].into())].into());
        assert_eq!((found.invalid_lines, found.is_complete), (vec![2, 5], false), "lines of an earlier version");
    }

    #[test]
    fn torn_line_is_no_sign_of_tampering() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = AuditCheckpointFile::open(directory.path(), "sqlite", [1; 32]).expect("it can be created");
        let line = |seq| {
            let entry = EntryRef { seq, hash: format!("{seq}a") };
            file.signed_line(Timestamp(0), SignedLineKind::Checkpoint, "c", &entry)
        };
        for torn in [line(2)[..40].to_owned(), "\0".repeat(40), format!("{}{}", "\0".repeat(9), &line(2)[9..])] {
            fs::write(file.path(), format!("{}\n{torn}", line(1))).expect("it can be written");
            file.append(&line(3)).expect("it can be written");
            let found = file.read_signed().expect("it can be read");
            assert_eq!((found.signed["c"].len(), found.invalid_lines), (2, vec![]), "{torn:?}");
        }
    }

    #[test]
    fn signature_covers_the_kind_of_line() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = AuditCheckpointFile::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let entry = EntryRef { seq: 3, hash: "h".to_owned() };
        let [checkpoint, removed, complete] =
            [SignedLineKind::Checkpoint, SignedLineKind::Removed, SignedLineKind::Complete]
                .map(|kind| files.signed_line(Timestamp(0), kind, "c", &entry));
        for line in [&checkpoint, &removed, &complete] {
            files.append(line).expect("writable");
        }
        files.append(&checkpoint.replace("checkpoint", "removed")).expect("writable");
        let found = files.read_signed().expect("readable");
        assert_eq!(found.anchors, [("c".to_owned(), [entry].into())].into());
        assert_eq!((found.signed["c"].len(), found.is_complete, found.invalid_lines), (1, true, vec![4]));
        let shipped = format!("<13>1 2024-01-15T10:30:00Z host simpletuner - - - {removed}\n{complete}\ntorn");
        let found = parse_shipped(&shipped, "sqlite");
        assert_eq!((found.anchors.len(), found.is_complete, found.invalid_lines), (1, true, vec![3]));
        assert_eq!(parse_shipped(&shipped, "postgres").anchors.len(), 0);
    }
}
