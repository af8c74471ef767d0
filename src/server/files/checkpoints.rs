//! What makes a forged audit trail be found: a key beside the database, and a file of what was signed with it.
//!
//! The file is only ever appended to. It, and the key, can be kept where nobody gets at them who can write the database.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use app::domain::audit::verify::trust::Anchors;
use app::domain::audit::verify::{Mark, Signed};
use app::domain::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;
use tokio::sync::Notify;

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
    appended: Notify,
}

/// A line of the file, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    /// What is signed; an earlier version signed checkpoints only, and said nothing.
    #[serde(default)]
    kind: Kind,
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
pub enum Kind {
    /// An entry, and so all of its chain up to it.
    #[default]
    Checkpoint,
    /// The last entry of a chain, whose server has ended.
    Closed,
    /// That retention removed the entries up to this one.
    Removed,
    /// That every chain and anchor that is not in the file came after this line.
    Complete,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Closed => "closed",
            Self::Removed => "removed",
            Self::Complete => "complete",
        }
    }
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignedLines {
    /// The hashes of entries that were signed.
    pub signed: Signed,
    /// The last entries of chains whose servers have ended.
    pub closed: BTreeMap<String, i64>,
    /// The ends of what retention has removed.
    pub anchors: Anchors,
    /// Whether all chains and anchors are in it; an earlier version wrote no anchors.
    pub is_complete: bool,
    /// The numbers of lines that are not what was appended.
    pub broken: Vec<usize>,
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
        Ok(Self { key, key_id, database, file: directory.join(FILE), appended: Notify::new() })
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
        self.mac_of(Kind::Checkpoint, chain, seq, hash)
    }

    fn mac_of(&self, kind: Kind, chain: &str, seq: i64, hash: &str) -> String {
        keyed(&self.key, &format!("{} {} {chain} {seq} {hash}", kind.as_str(), chain.len()))
    }

    /// A signed line.
    pub fn line(&self, at: Timestamp, kind: Kind, chain: &str, mark: &Mark) -> String {
        let Mark { seq, hash } = mark;
        let line = json!({
            "at": at,
            "kind": kind.as_str(),
            "database": self.database,
            "chain": chain,
            "seq": seq,
            "hash": hash,
            "key": self.key_id,
            "mac": self.mac_of(kind, chain, *seq, hash),
        });
        line.to_string()
    }

    /// Appends a line, and returns when it is on disk.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()?;
        self.appended.notify_waiters();
        Ok(())
    }

    /// The file itself.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Rings when a line was appended.
    pub fn appended(&self) -> &Notify {
        &self.appended
    }

    /// What the file says was signed with this key in this database.
    pub fn signed(&self) -> io::Result<SignedLines> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let is_ours = |line: &Line| line.key == self.key_id;
        let is_signed = |line: &Line| line.mac == self.mac_of(line.kind, &line.chain, line.seq, &line.hash);
        Ok(read_lines(&text, self.database, is_ours, is_signed))
    }
}

/// What lines say that were kept elsewhere, where nobody changes them: as text, each behind whatever a collector of logs
/// wrote before it. They count whatever key has signed them.
pub fn shipped(text: &str, database: &str) -> SignedLines {
    let bare: Vec<&str> = text.lines().map(|line| line.find('{').map_or(line, |at| &line[at..])).collect();
    read_lines(&bare.join("\n"), database, |_| true, |_| true)
}

fn read_lines(
    text: &str,
    database: &str,
    is_ours: impl Fn(&Line) -> bool,
    is_signed: impl Fn(&Line) -> bool,
) -> SignedLines {
    let mut found = SignedLines::default();
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str::<Line>(line) {
            Ok(line) if line.database != database || !is_ours(&line) => {}
            Ok(line) if is_signed(&line) => found.take(line),
            _ => found.broken.push(number),
        }
    }
    found
}

impl SignedLines {
    fn take(&mut self, line: Line) {
        let Line { kind, chain, seq, hash, .. } = line;
        match kind {
            Kind::Checkpoint => drop(self.signed.entry(chain).or_default().insert(seq, hash)),
            Kind::Closed => {
                self.closed.insert(chain.clone(), seq);
                self.signed.entry(chain).or_default().insert(seq, hash);
            }
            Kind::Removed => drop(self.anchors.entry(chain).or_default().insert(Mark { seq, hash })),
            Kind::Complete => self.is_complete = true,
        }
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
        assert_eq!(files.signed().expect("no file yet"), SignedLines::default());
        files.append(&line(files.key_id(), 3, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line(files.key_id(), 4, files.mac("c", 3, "h"))).expect("writable");
        files.append(&line("other", 5, String::new())).expect("writable");
        files.append(&of("postgres", files.key_id(), 6, String::new())).expect("writable");
        files.append("torn").expect("writable");
        let found = files.signed().expect("readable");
        assert_eq!(found.signed, [("c".to_owned(), [(3, "h".to_owned())].into())].into());
        assert_eq!((found.broken, found.is_complete), (vec![2, 5], false), "lines of an earlier version");
    }

    #[test]
    fn each_kind_of_line_is_signed_for_itself() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = Checkpoints::open(directory.path(), "sqlite", [1; 32]).expect("writable");
        let mark = Mark { seq: 3, hash: "h".to_owned() };
        let [checkpoint, removed, complete] =
            [Kind::Checkpoint, Kind::Removed, Kind::Complete].map(|kind| files.line(Timestamp(0), kind, "c", &mark));
        for line in [&checkpoint, &removed, &complete] {
            files.append(line).expect("writable");
        }
        files.append(&checkpoint.replace("checkpoint", "removed")).expect("writable");
        let found = files.signed().expect("readable");
        assert_eq!(found.anchors, [("c".to_owned(), [mark].into())].into());
        assert_eq!((found.signed["c"].len(), found.is_complete, found.broken), (1, true, vec![4]));
        let elsewhere = format!("<13>1 2024-01-15T10:30:00Z host simpletuner - - - {removed}\n{complete}\ntorn");
        let found = shipped(&elsewhere, "sqlite");
        assert_eq!((found.anchors.len(), found.is_complete, found.broken), (1, true, vec![3]));
        assert_eq!(shipped(&elsewhere, "postgres").anchors.len(), 0);
    }
}
