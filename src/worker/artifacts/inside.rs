//! Files in a directory that the trainer owns: read, put there and removed without following any link of the trainer's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open as open_path, openat, renameat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, unlinkat};

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_DIRECTORY);

/// Opens a plain file below a directory. No part of the way is a symbolic link, the directory itself included, whatever
/// was there when the files were listed.
///
/// # Errors
/// If it is not there, is no plain file, or a link is on the way.
pub fn open(root: &Path, path: &str) -> io::Result<File> {
    let (dir, name) = directory_of(root, path, open_dir)?;
    // Without waiting for whoever would write to a pipe.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let file = File::from(openat(&dir, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"))
    }
}

/// Removes a file below a directory. No part of the way is a symbolic link.
///
/// # Errors
/// If it is not there, or a link is on the way.
pub fn remove(root: &Path, path: &str) -> io::Result<()> {
    let (dir, name) = directory_of(root, path, open_dir)?;
    Ok(unlinkat(&dir, name, UnlinkatFlags::NoRemoveDir)?)
}

/// Moves a file to a place below a directory and gives it to the directory's owner. Missing directories on the way are made;
/// a link is not followed.
///
/// # Errors
/// If something that is no directory is on the way, or the disk refuses.
pub fn put(file: &Path, root: &Path, path: &str) -> io::Result<()> {
    let owner = fstat(open_root(root)?)?;
    let owner = (owner.st_uid, owner.st_gid);
    let (dir, name) = directory_of(root, path, |above, part| make_dir(above, part, owner))?;
    give(open_path(file, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?, owner)?;
    Ok(renameat(AT_FDCWD, file, &dir, name)?)
}

/// The directory that a path's last part is in, reached part by part, and that part.
fn directory_of<'path>(
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
    Ok(open_path(root, DIRECTORY, Mode::empty())?)
}

fn open_dir(above: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(above, name, DIRECTORY, Mode::empty())?)
}

/// The directory of this name, which is made if there is none.
fn make_dir(above: &OwnedFd, name: &str, owner: (u32, u32)) -> io::Result<OwnedFd> {
    let is_new = match mkdirat(above, name, Mode::from_bits_truncate(0o755)) {
        Ok(()) => true,
        Err(Errno::EEXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = open_dir(above, name)?;
    // The trainer may have put another one in its place since.
    if is_new && fstat(&dir)?.st_uid == geteuid().as_raw() {
        give(&dir, owner)?;
    }
    Ok(dir)
}

/// Only root can, and only root has to.
fn give(file: impl AsFd, (uid, gid): (u32, u32)) -> io::Result<()> {
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
    fn links_lead_nowhere() -> io::Result<()> {
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
    fn files_are_put_and_removed_below_the_directory_only() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let (root, outside, new) = (temp.path().join("output"), temp.path().join("outside"), temp.path().join("new"));
        std::fs::create_dir_all(&root)?;
        std::fs::create_dir(&outside)?;
        std::fs::write(outside.join("kept"), "kept")?;
        symlink(&outside, root.join("link"))?;
        symlink(outside.join("kept"), root.join("file"))?;
        symlink(&root, temp.path().join("other"))?;
        let put = |below: &Path, path: &str| {
            std::fs::write(&new, "new")?;
            super::put(&new, below, path)
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
