//! Reads, places and removes files in a directory that the trainer owns, without following any symbolic link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open as open_path, openat, renameat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, unlinkat};

const OPEN_DIR_FLAGS: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_DIRECTORY);

/// Opens a regular file below a directory. No component of the path, the directory included, may be a symbolic link,
/// whatever was there when the files were listed.
///
/// # Errors
/// If it does not exist, is no regular file, or a link is on the path.
pub fn open(root: &Path, path: &str) -> io::Result<File> {
    let (dir, name) = open_parent(root, path, open_dir)?;
    // Does not wait for a writer if it is a pipe.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let file = File::from(openat(&dir, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Removes a file below a directory. No component of the path may be a symbolic link.
///
/// # Errors
/// If it does not exist, or a link is on the path.
pub fn remove(root: &Path, path: &str) -> io::Result<()> {
    let (dir, name) = open_parent(root, path, open_dir)?;
    Ok(unlinkat(&dir, name, UnlinkatFlags::NoRemoveDir)?)
}

/// Moves a file below a directory and gives it to the directory's owner. Missing directories are created; links are not
/// followed.
///
/// # Errors
/// If a component of the path is no directory, or on an I/O error.
pub fn move_into(file: &Path, root: &Path, path: &str) -> io::Result<()> {
    let owner = fstat(open_root(root)?)?;
    let owner = (owner.st_uid, owner.st_gid);
    let (dir, name) = open_parent(root, path, |parent, part| open_or_create_dir(parent, part, owner))?;
    chown_if_root(open_path(file, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?, owner)?;
    Ok(renameat(AT_FDCWD, file, &dir, name)?)
}

/// Opens the parent directory of a path component by component; also returns the last component.
fn open_parent<'path>(
    root: &Path,
    path: &'path str,
    next: impl Fn(&OwnedFd, &str) -> io::Result<OwnedFd>,
) -> io::Result<(OwnedFd, &'path str)> {
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = open_root(root)?;
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        dir = next(&dir, part)?;
    }
    Ok((dir, name))
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(open_path(root, OPEN_DIR_FLAGS, Mode::empty())?)
}

fn open_dir(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(parent, name, OPEN_DIR_FLAGS, Mode::empty())?)
}

/// Opens the directory of this name, and creates it if it is missing.
fn open_or_create_dir(parent: &OwnedFd, name: &str, owner: (u32, u32)) -> io::Result<OwnedFd> {
    let is_new = match mkdirat(parent, name, Mode::from_bits_truncate(0o755)) {
        Ok(()) => true,
        Err(Errno::EEXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = open_dir(parent, name)?;
    // The trainer may have replaced it since.
    if is_new && fstat(&dir)?.st_uid == geteuid().as_raw() {
        chown_if_root(&dir, owner)?;
    }
    Ok(dir)
}

/// Only root can change the owner, and only root needs to.
fn chown_if_root(file: impl AsFd, (uid, gid): (u32, u32)) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    Ok(fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn links_are_not_followed() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let (root, outside) = (temp.path().join("output"), temp.path().join("outside"));
        std::fs::create_dir_all(root.join("a/b"))?;
        std::fs::create_dir(&outside)?;
        std::fs::write(outside.join("secret"), "s")?;
        std::fs::write(root.join("a/b/file"), "plain")?;
        symlink(outside.join("secret"), root.join("link"))?;
        symlink(&outside, root.join("dir"))?;
        symlink(&root, temp.path().join("other"))?;
        nix::unistd::mkfifo(&root.join("pipe"), Mode::S_IRWXU)?;

        let mut text = String::new();
        open(&root, "a/b/file")?.read_to_string(&mut text)?;
        assert_eq!(text, "plain");
        for path in ["link", "dir/secret", "pipe", "a/b", "missing", "a/missing/file", "a/b/file/x"] {
            assert!(open(&root, path).is_err(), "{path}");
        }
        assert!(open(&temp.path().join("other"), "a/b/file").is_err(), "the directory itself is a link");
        Ok(())
    }

    #[test]
    fn files_are_placed_and_removed_only_below_the_directory() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let (root, outside, new) = (temp.path().join("output"), temp.path().join("outside"), temp.path().join("new"));
        std::fs::create_dir_all(&root)?;
        std::fs::create_dir(&outside)?;
        std::fs::write(outside.join("kept"), "kept")?;
        symlink(&outside, root.join("link"))?;
        symlink(outside.join("kept"), root.join("file"))?;
        symlink(&root, temp.path().join("other"))?;
        let put = |dir: &Path, path: &str| {
            std::fs::write(&new, "new")?;
            super::move_into(&new, dir, path)
        };
        let owner = if geteuid().is_root() { 65_534 } else { geteuid().as_raw() };
        std::os::unix::fs::chown(&root, Some(owner), None)?;
        for path in ["a/b/c", "a/b/d", "plain", "file"] {
            put(&root, path)?;
            assert_eq!(std::fs::read(root.join(path))?, b"new", "{path}");
            assert_eq!(std::fs::symlink_metadata(root.join(path))?.uid(), owner, "{path}");
        }
        assert_eq!(std::fs::metadata(root.join("a"))?.uid(), owner);
        for path in ["link/x", "plain/x"] {
            assert!(put(&root, path).is_err(), "{path}");
        }
        assert!(super::remove(&root, "link/kept").is_err());
        super::remove(&root, "a/b/d")?;
        assert!(!root.join("a/b/d").exists());
        assert!(put(&temp.path().join("other"), "x").is_err(), "the directory itself is a link");
        let names: Vec<_> = std::fs::read_dir(&outside)?.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!((names, std::fs::read(outside.join("kept"))?), (vec!["kept".into()], b"kept".to_vec()));
        Ok(())
    }
}
