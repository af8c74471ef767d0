//! Opening a trainer's file, and nothing that a link leads to.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::fcntl::{OFlag, open as open_path, openat};
use nix::sys::stat::Mode;

/// Opens a plain file below a directory. No part of the way is a symbolic link, the directory itself included, whatever
/// was there when the files were listed.
///
/// # Errors
/// If it is not there, is no plain file, or a link is on the way.
pub fn open(root: &Path, path: &str) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = open_path(root, flags | OFlag::O_DIRECTORY, Mode::empty())?;
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        dir = openat(&dir, part, flags | OFlag::O_DIRECTORY, Mode::empty())?;
    }
    // Without waiting for whoever would write to a pipe.
    let file = File::from(openat(&dir, name, flags | OFlag::O_NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

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
}
