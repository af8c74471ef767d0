//! Access for the operator on the server's host: the server's address, and a token of this run, in a file that only the
//! server's user and root can read.
//!
//! Servers of several hosts may share the data directory, so each has its own file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use app::protocol::system::fingerprint::Fingerprint;
use nix::fcntl::OFlag;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};

use super::atomic_write;

const DIRECTORY: &str = "operator";
/// The maximum size of the file, in bytes.
const MAX_BYTES: u64 = 4_096;

/// The contents of the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEndpoint {
    /// The server's address for its own host: `http://127.0.0.1:8001`.
    pub url: String,
    /// The fingerprint of its key, if it uses TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    pub token: String,
    pub host: String,
    pub started_at: Timestamp,
}

/// The file of one server in a data directory.
pub struct OperatorFile(PathBuf);

impl OperatorFile {
    /// The file of the server on this host and port.
    pub fn new(data: &Path, host: &str, port: u16) -> Self {
        let safe_char = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let host: String = host.chars().map(safe_char).collect();
        Self(data.join(DIRECTORY).join(format!("{host}-{port}.json")))
    }

    /// Writes it atomically; replaces one of an earlier run.
    pub fn write(&self, endpoint: &OperatorEndpoint) -> io::Result<()> {
        let directory = self.0.parent().ok_or(ErrorKind::InvalidInput)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        atomic_write::replace(&self.0, 0o600, serde_json::to_string(endpoint)?.as_bytes())
    }

    /// Removes it, if it is still this server's.
    pub fn remove(&self, token: &str) -> io::Result<()> {
        let text = fs::read_to_string(&self.0)?;
        let is_current = serde_json::from_str(&text).is_ok_and(|endpoint: OperatorEndpoint| endpoint.token == token);
        if is_current { fs::remove_file(&self.0) } else { Ok(()) }
    }
}

/// Returns the endpoint of the server on this host that started last; `None` if there is none that this user may read.
///
/// # Errors
/// With a message, if one exists that should not be trusted.
pub fn find_endpoint(data: &Path, host: &str) -> Result<Option<OperatorEndpoint>, String> {
    let Ok(entries) = fs::read_dir(data.join(DIRECTORY)) else { return Ok(None) };
    let mut newest: Option<OperatorEndpoint> = None;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let endpoint =
            read_endpoint(&path, data).map_err(|reason| format!("{} is not trusted: {reason}", path.display()))?;
        let endpoint = endpoint.filter(|endpoint| endpoint.host == host);
        newest = newest.into_iter().chain(endpoint).max_by_key(|endpoint| endpoint.started_at);
    }
    Ok(newest)
}

fn read_endpoint(path: &Path, data: &Path) -> Result<Option<OperatorEndpoint>, String> {
    // A link could lead to another user's file.
    let result = OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path);
    let file = match result {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => return Ok(None),
        result => result.map_err(|error| error.to_string())?,
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let directory = fs::metadata(data).map_err(|error| error.to_string())?;
    check_trusted(metadata.uid(), metadata.mode(), Uid::effective().as_raw(), directory.uid())?;
    parse_endpoint(file).map_err(|error| error.to_string())
}

fn parse_endpoint(file: File) -> io::Result<Option<OperatorEndpoint>> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(Some(serde_json::from_str(&text)?))
}

/// Checks whether a file with this owner and mode was written by the server of that directory. Root trusts the owner of
/// the directory, and every user trusts their own files.
fn check_trusted(owner: u32, mode: u32, reader: u32, directory: u32) -> Result<(), String> {
    if mode & 0o077 != 0 {
        return Err(format!("other users can read or write it (mode {:o})", mode & 0o777));
    }
    if owner == reader || (reader == 0 && owner == directory) {
        return Ok(());
    }
    Err(format!("it belongs to another user (user id {owner})"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use tempfile::TempDir;

    use super::*;

    fn endpoint(token: &str, started_at: i64) -> OperatorEndpoint {
        OperatorEndpoint {
            url: "http://127.0.0.1:8001".to_owned(),
            fingerprint: None,
            token: token.to_owned(),
            host: "here".to_owned(),
            started_at: Timestamp(started_at),
        }
    }

    fn token_of(result: Result<Option<OperatorEndpoint>, String>) -> Option<String> {
        result.expect("trusted").map(|endpoint| endpoint.token)
    }

    #[test]
    fn file_is_private_and_removed_by_its_server() {
        let data = TempDir::new().expect("a directory");
        let file = OperatorFile::new(data.path(), "here", 8001);
        assert_eq!(token_of(find_endpoint(data.path(), "here")), None);
        file.write(&endpoint("ot_a", 1)).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("readable").permissions().mode() & 0o777;
        assert_eq!((mode(&file.0), mode(file.0.parent().expect("a directory"))), (0o600, 0o700));
        assert_eq!(token_of(find_endpoint(data.path(), "here")).as_deref(), Some("ot_a"));
        assert_eq!(
            token_of(find_endpoint(data.path(), "elsewhere")),
            None,
            "another host's server on a shared directory"
        );

        file.write(&endpoint("ot_b", 2)).expect("replaced");
        OperatorFile::new(data.path(), "here", 8002).write(&endpoint("ot_c", 3)).expect("written");
        assert_eq!(token_of(find_endpoint(data.path(), "here")).as_deref(), Some("ot_c"), "the one that started last");
        file.remove("ot_a").expect("a file of a newer run stays");
        assert!(file.0.exists());
        file.remove("ot_b").expect("removed");
        assert!(!file.0.exists());
    }

    #[test]
    fn file_writable_by_other_users_is_rejected() {
        let data = TempDir::new().expect("a directory");
        let file = OperatorFile::new(data.path(), "here", 8001);
        file.write(&endpoint("ot_a", 1)).expect("written");
        fs::set_permissions(&file.0, fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(find_endpoint(data.path(), "here").is_err_and(|reason| reason.contains("mode 640")));
        fs::set_permissions(&file.0, fs::Permissions::from_mode(0o600)).expect("changed");
        // Only root can change owners.
        if Uid::effective().is_root() {
            chown(&file.0, Some(12_345), None).expect("owner changed");
            assert!(find_endpoint(data.path(), "here").is_err_and(|reason| reason.contains("user id 12345")));
            chown(data.path(), Some(12_345), None).expect("owner changed");
            assert_eq!(
                token_of(find_endpoint(data.path(), "here")).as_deref(),
                Some("ot_a"),
                "the data directory belongs to the same user"
            );
            chown(data.path(), Some(0), None).expect("owner restored");
            fs::remove_file(&file.0).expect("removed");
        }
        let target = data.path().join("planted");
        fs::write(&target, "{}").expect("written");
        fs::remove_file(&file.0).ok();
        symlink(&target, &file.0).expect("linked");
        assert!(find_endpoint(data.path(), "here").is_err());
    }

    #[test]
    fn trusted_file_owners() {
        for (owner, mode, reader, directory, is_trusted) in [
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
            assert_eq!(check_trusted(owner, mode, reader, directory).is_ok(), is_trusted, "{owner} {mode:o} {reader}");
        }
    }
}
