//! The way in for whoever is on the server's host: where it listens, and a token of this life of the server, in a file
//! that only the server's own user and root can read.
//!
//! Servers of several hosts may share the data directory, so each has a file of its own name.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use app::protocol::fingerprint::Fingerprint;
use nix::fcntl::OFlag;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};

use super::whole;

const DIRECTORY: &str = "operator";
/// No note is longer, in bytes.
const LONGEST: u64 = 4_096;

/// What the file says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where the server listens, as its own host reaches it: `http://127.0.0.1:8001`.
    pub url: String,
    /// The fingerprint of its key, if it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The token.
    pub token: String,
    /// The host that the server is on.
    pub host: String,
    /// When it started.
    pub started_at: Timestamp,
}

/// The file of one server in a data directory.
pub struct NoteFile(PathBuf);

impl NoteFile {
    /// That of the server on this host and port.
    pub fn of(data: &Path, host: &str, port: u16) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let host: String = host.chars().map(plain).collect();
        Self(data.join(DIRECTORY).join(format!("{host}-{port}.json")))
    }

    /// Writes it in one step, over what an earlier life may have left.
    pub fn write(&self, note: &Note) -> io::Result<()> {
        let directory = self.0.parent().ok_or(ErrorKind::InvalidInput)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        whole::replace(&self.0, 0o600, serde_json::to_string(note)?.as_bytes())
    }

    /// Removes it, if it is still what this server wrote.
    pub fn remove(&self, token: &str) -> io::Result<()> {
        let text = fs::read_to_string(&self.0)?;
        let ours = serde_json::from_str(&text).is_ok_and(|note: Note| note.token == token);
        if ours { fs::remove_file(&self.0) } else { Ok(()) }
    }
}

/// The note of the server on this host that started last; none if there is none that this user may read.
///
/// # Errors
/// With a sentence, if one is there that should not be believed.
pub fn find(data: &Path, host: &str) -> Result<Option<Note>, String> {
    let Ok(entries) = fs::read_dir(data.join(DIRECTORY)) else { return Ok(None) };
    let mut newest: Option<Note> = None;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let note = read(&path, data).map_err(|why| format!("{} is not believed: {why}", path.display()))?;
        let note = note.filter(|note| note.host == host);
        newest = newest.into_iter().chain(note).max_by_key(|note| note.started_at);
    }
    Ok(newest)
}

fn read(path: &Path, data: &Path) -> Result<Option<Note>, String> {
    // A link would lead to a file of somebody else's choice.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path);
    let file = match opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let directory = fs::metadata(data).map_err(|error| error.to_string())?;
    believable(metadata.uid(), metadata.mode(), Uid::effective().as_raw(), directory.uid())?;
    text(file).map_err(|error| error.to_string())
}

fn text(file: File) -> io::Result<Option<Note>> {
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(Some(serde_json::from_str(&text)?))
}

/// Whether a file of this owner and mode says what the server of that directory wrote. Root believes the owner of the
/// directory that it was sent to, and everybody believes themselves.
fn believable(owner: u32, mode: u32, reader: u32, directory: u32) -> Result<(), String> {
    if mode & 0o077 != 0 {
        return Err(format!("others can read or write it (mode {:o})", mode & 0o777));
    }
    if owner == reader || (reader == 0 && owner == directory) {
        return Ok(());
    }
    Err(format!("it belongs to somebody else (user id {owner})"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use tempfile::TempDir;

    use super::*;

    fn note(token: &str, started_at: i64) -> Note {
        Note {
            url: "http://127.0.0.1:8001".to_owned(),
            fingerprint: None,
            token: token.to_owned(),
            host: "here".to_owned(),
            started_at: Timestamp(started_at),
        }
    }

    fn token_of(found: Result<Option<Note>, String>) -> Option<String> {
        found.expect("believable").map(|note| note.token)
    }

    #[test]
    fn only_its_owner_can_read_it_and_it_goes_with_the_server_that_wrote_it() {
        let data = TempDir::new().expect("a directory");
        let file = NoteFile::of(data.path(), "here", 8001);
        assert_eq!(token_of(find(data.path(), "here")), None);
        file.write(&note("ot_a", 1)).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&file.0), mode(file.0.parent().expect("a directory"))), (0o600, 0o700));
        assert_eq!(token_of(find(data.path(), "here")).as_deref(), Some("ot_a"));
        assert_eq!(token_of(find(data.path(), "elsewhere")), None, "another host's server on a shared directory");

        file.write(&note("ot_b", 2)).expect("replaced");
        NoteFile::of(data.path(), "here", 8002).write(&note("ot_c", 3)).expect("written");
        assert_eq!(token_of(find(data.path(), "here")).as_deref(), Some("ot_c"), "the one that started last");
        file.remove("ot_a").expect("left alone: a newer life wrote it");
        assert!(file.0.exists());
        file.remove("ot_b").expect("removed");
        assert!(!file.0.exists());
    }

    #[test]
    fn a_file_that_somebody_else_could_have_written_is_refused() {
        let data = TempDir::new().expect("a directory");
        let file = NoteFile::of(data.path(), "here", 8001);
        file.write(&note("ot_a", 1)).expect("written");
        fs::set_permissions(&file.0, fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(find(data.path(), "here").is_err_and(|why| why.contains("mode 640")));
        fs::set_permissions(&file.0, fs::Permissions::from_mode(0o600)).expect("changed");
        // Only root can give files away.
        if Uid::effective().is_root() {
            chown(&file.0, Some(12_345), None).expect("given away");
            assert!(find(data.path(), "here").is_err_and(|why| why.contains("user id 12345")));
            chown(data.path(), Some(12_345), None).expect("given away");
            assert_eq!(token_of(find(data.path(), "here")).as_deref(), Some("ot_a"), "its directory is theirs too");
            chown(data.path(), Some(0), None).expect("taken back");
            fs::remove_file(&file.0).expect("removed");
        }
        let elsewhere = data.path().join("planted");
        fs::write(&elsewhere, "{}").expect("written");
        fs::remove_file(&file.0).ok();
        symlink(&elsewhere, &file.0).expect("linked");
        assert!(find(data.path(), "here").is_err());
    }

    #[test]
    fn whose_word_is_believed() {
        for (owner, mode, reader, directory, believed) in [
            (1000, 0o100_600, 1000, 1000, true),
            (1000, 0o100_600, 1000, 0, true),
            (1000, 0o100_400, 0, 1000, true),
            (0, 0o100_600, 0, 1000, true),
            (1001, 0o100_600, 0, 1000, false),
            (1001, 0o100_600, 1000, 1001, false),
            (0, 0o100_600, 1000, 1000, false),
            (1000, 0o100_604, 1000, 1000, false),
            (1000, 0o100_620, 0, 1000, false),
        ] {
            assert_eq!(believable(owner, mode, reader, directory).is_ok(), believed, "{owner} {mode:o} {reader}");
        }
    }
}
