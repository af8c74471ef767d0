//! A file under a second name: what is large is put in its place without being copied.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::uploads::gone;

/// Puts a file, which is on the disk, under this name too, in the place of what is there. Directories are made, and the name
/// is on the disk when this returns.
///
/// # Errors
/// Where both are on two file systems, or one that has no links. What was there stays.
pub fn replace(file: &Path, target: &Path) -> io::Result<()> {
    let parent = target.parent().ok_or(ErrorKind::InvalidInput)?;
    let known = parent.ancestors().find(|directory| directory.is_dir()).map(Path::to_owned);
    fs::create_dir_all(parent)?;
    // Unlike any file that a job may have made, and passed over by whoever lists them.
    let draft = draft(target, fs::metadata(file)?.ino());
    gone(fs::remove_file(&draft))?;
    fs::hard_link(file, &draft)?;
    fs::rename(&draft, target)?;
    // Of two names of one file, renaming leaves both.
    gone(fs::remove_file(&draft))?;
    for directory in parent.ancestors() {
        File::open(directory)?.sync_all()?;
        if Some(directory) == known.as_deref() {
            break;
        }
    }
    Ok(())
}

fn draft(target: &Path, number: u64) -> PathBuf {
    let mut name: OsString = target.file_name().unwrap_or_default().to_owned();
    name.push(format!("#{number}"));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_the_place_of_another_without_being_copied() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |path: &str| directory.path().join(path);
        fs::write(at("part"), "new").expect("written");
        fs::create_dir(at("made")).expect("made");
        fs::write(at("made/model.bin"), "old").expect("written");
        for target in ["made/model.bin", "made/model.bin", "made/further/down/model.bin"] {
            replace(&at("part"), &at(target)).expect("one file system");
            assert_eq!(fs::read_to_string(at(target)).expect("there"), "new");
            let same = |path: &str| fs::metadata(at(path)).expect("there").ino();
            assert_eq!(same(target), same("part"));
        }
        assert_eq!(fs::read_dir(at("made")).expect("there").count(), 2, "no draft is left");
        assert!(replace(&at("none"), &at("made/model.bin")).is_err());
        assert_eq!(fs::read_to_string(at("made/model.bin")).expect("there"), "new");
    }
}
