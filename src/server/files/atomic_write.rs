//! Atomic writes of small files: they are complete or absent, also with concurrent writers.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Writes a file unless it exists; a file of a concurrent writer stays.
pub fn write_if_absent(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    match write_temp(path, mode, bytes)?.persist_noclobber(path) {
        Err(persist_error) if persist_error.error.kind() != ErrorKind::AlreadyExists => Err(persist_error.error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Writes a file; replaces an existing one.
pub fn replace(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    write_temp(path, mode, bytes)?.persist(path)?;
    Ok(())
}

/// Writes to a unique temporary name: servers in containers may share both a directory and a process id.
fn write_temp(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let directory = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let mut draft = Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(directory)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    #[test]
    fn concurrent_writers_leave_one_complete_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let contents: Vec<Vec<u8>> = (b'a'..=b'h').map(|letter| vec![letter; 64 << 10]).collect();
        for _ in 0..20 {
            thread::scope(|scope| {
                let threads: Vec<_> =
                    contents.iter().map(|bytes| scope.spawn(|| write_if_absent(&path, 0o600, bytes))).collect();
                assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|content| content.is_ok())));
            });
            let content = fs::read(&path).expect("readable");
            assert!(contents.contains(&content), "one complete file");
            write_if_absent(&path, 0o600, b"late").expect("content");
            assert_eq!(fs::read(&path).expect("readable"), content, "an existing file stays");
            assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1, "no draft is left");
            fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn replaced_file_has_the_requested_mode() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("note");
        for (mode, bytes) in [(0o644, "first"), (0o600, "second")] {
            replace(&path, mode, bytes.as_bytes()).expect("replaced");
            assert_eq!(fs::read_to_string(&path).expect("readable"), bytes);
            assert_eq!(fs::metadata(&path).expect("readable").permissions().mode() & 0o777, mode);
        }
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1, "no draft is left");
        assert!(replace(&path.join("below"), 0o600, b"").is_err(), "no directory");
    }
}
