//! The states in which a crash after some operations may leave a directory.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::disk::{Content, Disk, Entry, File, Names, overwrite};
use crate::operation::{FileId, Operation};
use crate::recorder::is_index;

/// What disks write at once.
const SECTOR: usize = 512;

/// A directory after a crash.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// How many operations had ended.
    pub prefix: usize,
    pub variant: String,
    names: Names,
    files: Vec<(Content, u32)>,
}

impl CrashState {
    fn new(disk: &Disk, prefix: usize, variant: &str, names: &Names, content: impl Fn(FileId) -> Content) -> Self {
        let content = |id, file: &File| if disk.survives(&file.name) { Arc::clone(&file.live) } else { content(id) };
        let files = disk.files.iter().enumerate().map(|(id, file)| (content(id, file), file.mode)).collect();
        let crashed = names.iter().filter(|(name, _)| !disk.survives(name));
        let survived = disk.live.iter().filter(|(name, _)| disk.survives(name));
        let names: Names = crashed.chain(survived).map(|(name, entry)| (name.clone(), *entry)).collect();
        let names = &names;
        let visible = names.iter().filter(|(name, _)| !is_index(name) && has_parents(names, name));
        let names = visible.map(|(name, entry)| (name.clone(), *entry)).collect();
        Self { prefix, variant: variant.to_owned(), names, files }
    }

    /// Replaces the content of a file.
    pub fn replace(&mut self, file: FileId, content: Content) {
        self.files[file].0 = content;
    }

    /// Equal states are checked once.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, entry) in &self.names {
            name.hash(&mut hasher);
            match entry {
                Entry::File(file) => {
                    let (content, mode) = &self.files[*file];
                    (*file, content, mode).hash(&mut hasher);
                }
                Entry::Directory(mode) => mode.hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Writes it to a new directory.
    pub fn write_to(&self, root: &Path) -> Result<()> {
        fs::create_dir(root)?;
        let mut written: Vec<Option<PathBuf>> = vec![None; self.files.len()];
        for (name, entry) in &self.names {
            let path = root.join(name);
            match entry {
                Entry::Directory(mode) => {
                    fs::create_dir(&path).with_context(|| path.display().to_string())?;
                    fs::set_permissions(&path, Permissions::from_mode(*mode))?;
                }
                Entry::File(file) => {
                    if let Some(other) = &written[*file] {
                        fs::hard_link(other, &path)?;
                        continue;
                    }
                    let (content, mode) = &self.files[*file];
                    fs::write(&path, content.as_slice()).with_context(|| path.display().to_string())?;
                    fs::set_permissions(&path, Permissions::from_mode(*mode))?;
                    written[*file] = Some(path);
                }
            }
        }
        Ok(())
    }

    /// What differs from a directory; empty if nothing does.
    pub fn differences(&self, root: &Path) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        let mut actual = BTreeSet::new();
        list(root, root, &mut actual)?;
        for name in actual.iter().filter(|name| !self.names.contains_key(*name)) {
            differences.push(format!("{} was not recorded", name.display()));
        }
        for (name, entry) in &self.names {
            let path = root.join(name);
            let same = match entry {
                Entry::Directory(mode) => fs::metadata(&path).is_ok_and(|at| at.permissions().mode() & 0o7777 == *mode),
                Entry::File(file) => fs::read(&path).is_ok_and(|bytes| bytes == **self.files[*file].0),
            };
            if !same {
                differences.push(format!("{} differs", name.display()));
            }
        }
        Ok(differences)
    }
}

fn list(root: &Path, directory: &Path, names: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.path().strip_prefix(root)?.to_owned();
        if !is_index(&name) {
            names.insert(name);
        }
        if entry.file_type()?.is_dir() {
            list(root, &entry.path(), names)?;
        }
    }
    Ok(())
}

fn has_parents(names: &Names, name: &Path) -> bool {
    name.ancestors().skip(1).all(|parent| parent.as_os_str().is_empty() || names.contains_key(parent))
}

/// The state without a power cut: everything that was written is there.
pub fn killed(disk: &Disk, prefix: usize) -> CrashState {
    CrashState::new(disk, prefix, "killed", &disk.live, |file| Arc::clone(&disk.files[file].live))
}

/// The states in which a crash after the last of these operations may leave the disk.
pub fn after_crash(disk: &Disk, prefix: usize, last: Option<&Operation>, posix: bool) -> Vec<CrashState> {
    let live = |file: FileId| Arc::clone(&disk.files[file].live);
    let durable = |file: FileId| Arc::clone(&disk.files[file].durable);
    let committed = |file: FileId| disk.files[file].committed();
    let state = |variant: &str, names: &Names, content: &dyn Fn(FileId) -> Content| {
        CrashState::new(disk, prefix, variant, names, content)
    };
    let mut states = vec![
        killed(disk, prefix),
        state("flushed only", &disk.committed, &durable),
        state("all names, flushed data", &disk.live, &committed),
        state("flushed names, all data", &disk.committed, &live),
    ];
    let dirty: Vec<FileId> = (0..disk.files.len()).filter(|file| disk.can_lose(*file)).collect();
    for one in dirty.iter().filter(|_| dirty.len() > 1) {
        let name = disk.files[*one].name.display();
        let only = |file| if file == *one { live(file) } else { committed(file) };
        states.push(state(&format!("all names, flushed data and all of {name}"), &disk.live, &only));
        let all_but = |file| if file == *one { committed(file) } else { live(file) };
        states.push(state(&format!("everything but unflushed data of {name}"), &disk.live, &all_but));
    }
    if let Some(Operation::Write { file: torn, offset, bytes }) = last {
        for (variant, range) in torn_ranges(*offset, bytes.len()) {
            let mut half = committed(*torn);
            overwrite(Arc::make_mut(&mut half), offset + range.start as u64, &bytes[range]);
            let others_there = |file| if file == *torn { Arc::clone(&half) } else { live(file) };
            let others_flushed = |file| if file == *torn { Arc::clone(&half) } else { committed(file) };
            states.push(state(&format!("{variant} of the last write"), &disk.live, &others_flushed));
            if dirty.len() > 1 {
                states.push(state(&format!("{variant} of the last write, all other data"), &disk.live, &others_there));
            }
        }
        states.extend(torn_on_earlier_writes(disk, prefix, *torn, *offset, bytes));
    }
    if posix {
        // The data directory itself is there.
        let top = disk.live.iter().filter(|(name, _)| name.components().count() == 1);
        let names = disk.flushed.iter().chain(top).map(|(name, entry)| (name.clone(), *entry)).collect();
        states.push(state("names of flushed directories, flushed data", &names, &durable));
    }
    states
}

/// The last write is torn, and the unflushed ones before it are there.
fn torn_on_earlier_writes(disk: &Disk, prefix: usize, torn: FileId, offset: u64, bytes: &[u8]) -> Option<CrashState> {
    let from = usize::try_from(offset).expect("a length in memory");
    let (_, range) = torn_ranges(offset, bytes.len()).into_iter().find(|(variant, _)| *variant == "the begin")?;
    let mut content = disk.files[torn].live.to_vec();
    let (lost_from, lost_to) = (from + range.end, from + bytes.len());
    if lost_to == content.len() {
        content.truncate(lost_from);
    } else {
        content[lost_from..lost_to].fill(0);
    }
    let content = Arc::new(content);
    let pick = |file: FileId| if file == torn { Arc::clone(&content) } else { Arc::clone(&disk.files[file].live) };
    Some(CrashState::new(disk, prefix, "all but the end of the last write", &disk.live, pick))
}

/// What of a write may be on disk: its first sectors, its last ones, or only the length that it gave the file. ext4
/// commits a length before the data, whose blocks then read as zeros.
fn torn_ranges(offset: u64, length: usize) -> Vec<(&'static str, std::ops::Range<usize>)> {
    let from = usize::try_from(offset).expect("a length in memory");
    let boundaries: Vec<usize> = (from + 1..from + length).filter(|at| at % SECTOR == 0).map(|at| at - from).collect();
    let mut ranges = vec![("only the length", length..length)];
    if let Some(middle) = boundaries.get(boundaries.len() / 2) {
        ranges.extend([("the begin", 0..*middle), ("the end", *middle..length)]);
    }
    ranges
}
