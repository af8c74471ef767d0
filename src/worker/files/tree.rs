//! Removes what a trainer has created: of any depth, with any mode, and with links to anywhere.

use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;

use nix::NixPath;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmod, fchmodat, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Max names of a directory in memory at once.
const BATCH: usize = 4_096;
/// Prefix of directories that were moved up; a number follows.
const MOVED_PREFIX: &str = "moved";

/// Removes a directory and everything in it. Links are not followed. Stack and descriptors do not grow with the depth:
/// a directory below the first level is moved up to it, and removed from there.
///
/// # Errors
/// `NotFound` if it does not exist; otherwise any I/O error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let mut top = open_dir(AT_FDCWD, path)?;
    let mut moved = 0;
    while for_each_entry(&mut top, |top, name, is_dir| {
        if is_dir {
            clear_dir(top, name, &mut moved)?;
        }
        remove_entry(top, name, is_dir)
    })? {}
    std::fs::remove_dir(path)
}

/// Empties a directory of the first level.
fn clear_dir(top: &Dir, name: &CStr, moved: &mut u64) -> io::Result<()> {
    let mut dir = open_dir(top, name)?;
    while for_each_entry(&mut dir, |dir, name, is_dir| {
        if is_dir { move_to_top(dir, name, top, moved) } else { remove_entry(dir, name, false) }
    })? {}
    Ok(())
}

/// Calls `visit` for the first names in a directory. Returns `false` if there are none.
fn for_each_entry(dir: &mut Dir, mut visit: impl FnMut(&Dir, &CStr, bool) -> io::Result<()>) -> io::Result<bool> {
    let mut names = Vec::new();
    for entry in dir.iter().take(BATCH) {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    for (name, kind) in &names {
        let is_dir = if let Some(kind) = kind {
            *kind == Type::Directory
        } else {
            // Some file systems do not report the type.
            let mode = fstatat(&*dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?.st_mode;
            SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFDIR
        };
        visit(dir, name, is_dir)?;
    }
    Ok(!names.is_empty())
}

fn move_to_top(from: &Dir, name: &CStr, top: &Dir, moved: &mut u64) -> io::Result<()> {
    // Moving a directory changes its `..`, for which it must be writable.
    drop(open_dir(from, name)?);
    loop {
        *moved += 1;
        let new_name = CString::new(format!("{MOVED_PREFIX}{moved}"))?;
        match renameat(from, name, top, new_name.as_c_str()) {
            // The trainer has created an entry of this name.
            Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
            result => return Ok(result?),
        }
    }
}

fn remove_entry(dir: &Dir, name: &CStr, is_dir: bool) -> io::Result<()> {
    let flags = if is_dir { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
    match unlinkat(dir, name, flags) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory and makes it writable for its owner, whatever its mode.
fn open_dir<P: ?Sized + NixPath>(parent: impl std::os::fd::AsFd, name: &P) -> io::Result<Dir> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let dir = match Dir::openat(&parent, name, flags, Mode::empty()) {
        Err(Errno::EACCES) => {
            fchmodat(&parent, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
            Dir::openat(&parent, name, flags, Mode::empty())?
        }
        result => result?,
    };
    if !Mode::from_bits_truncate(fstat(&dir)?.st_mode).contains(Mode::S_IRWXU) {
        fchmod(&dir, Mode::S_IRWXU)?;
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::sys::stat::mkdirat;

    use super::*;

    /// Creates a chain of directories that is too deep for any path.
    fn chain(root: &Path, depth: usize) -> io::Result<()> {
        let mut dir = open_dir(AT_FDCWD, root)?;
        for _ in 0..depth {
            mkdirat(&dir, "d", Mode::S_IRWXU)?;
            dir = open_dir(&dir, "d")?;
        }
        Ok(())
    }

    #[test]
    fn tree_of_any_depth_is_removed() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let tree = temp.path().join("tree");
        fs::create_dir(&tree)?;
        // The recursion of std needs more stack than threads have, and a descriptor per level.
        chain(&tree, 3_000)?;
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || remove_tree(&tree))?
            .join()
            .expect("no panic")?;
        assert_eq!(fs::read_dir(temp.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn tree_is_removed_without_following_links() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let (tree, outside) = (temp.path().join("tree"), temp.path().join("outside"));
        fs::create_dir_all(tree.join("a/b/c"))?;
        fs::create_dir_all(tree.join("moved1/x"))?;
        fs::create_dir(&outside)?;
        for file in ["tree/a/b/c/file", "tree/a/file", "tree/moved2", "outside/kept"] {
            fs::write(temp.path().join(file), file)?;
        }
        for (name, target) in [("a/link", &outside), ("a/b/link", &outside), ("a/b/dead", &temp.path().join("nowhere"))]
        {
            symlink(target, tree.join(name))?;
        }
        for number in 0..2 * BATCH {
            fs::write(tree.join(format!("a/b/{number}")), "")?;
        }
        fs::set_permissions(tree.join("a/b/c"), fs::Permissions::from_mode(0o0))?;
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o500))?;
        remove_tree(&tree)?;
        assert!(!tree.exists());
        assert_eq!(fs::read(outside.join("kept"))?, b"outside/kept");
        assert!(remove_tree(&tree).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        symlink(&outside, &tree)?;
        assert!(remove_tree(&tree).is_err(), "the directory itself is a link");
        Ok(())
    }
}
