//! Hard links: a large file is stored without copying it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::uploads::ignore_not_found;

/// Links a file, which is on disk, to this name; replaces an existing file. Creates directories; the name is on disk
/// when this returns.
///
/// # Errors
/// If the names are on two file systems, or on one without hard links. An existing file stays.
pub fn link_replacing(file: &Path, target: &Path) -> io::Result<()> {
    let parent = target.parent().ok_or(ErrorKind::InvalidInput)?;
    let existing_parent = parent.ancestors().find(|directory| directory.is_dir()).map(Path::to_owned);
    fs::create_dir_all(parent)?;
    // Unlike any file of a job, and ignored by listings.
    let draft = temp_path(target, fs::metadata(file)?.ino());
    ignore_not_found(fs::remove_file(&draft))?;
    fs::hard_link(file, &draft)?;
    fs::rename(&draft, target)?;
    // Renaming one of two links to a file onto the other leaves both.
    ignore_not_found(fs::remove_file(&draft))?;
    for directory in parent.ancestors() {
        File::open(directory)?.sync_all()?;
        if Some(directory) == existing_parent.as_deref() {
            break;
        }
    }
    Ok(())
}

fn temp_path(target: &Path, number: u64) -> PathBuf {
    let mut name: OsString = target.file_name().unwrap_or_default().to_owned();
    name.push(format!("#{number}"));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_by_a_hard_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let path_of = |path: &str| directory.path().join(path);
        fs::write(path_of("part"), "new").expect("written");
        fs::create_dir(path_of("made")).expect("created");
        fs::write(path_of("made/model.bin"), "old").expect("written");
        for target in ["made/model.bin", "made/model.bin", "made/further/down/model.bin"] {
            link_replacing(&path_of("part"), &path_of(target)).expect("one file system");
            assert_eq!(fs::read_to_string(path_of(target)).expect("readable"), "new");
            let inode = |path: &str| fs::metadata(path_of(path)).expect("readable").ino();
            assert_eq!(inode(target), inode("part"));
        }
        assert_eq!(fs::read_dir(path_of("made")).expect("readable").count(), 2, "no draft is left");
        assert!(link_replacing(&path_of("none"), &path_of("made/model.bin")).is_err());
        assert_eq!(fs::read_to_string(path_of("made/model.bin")).expect("readable"), "new");
    }
}
