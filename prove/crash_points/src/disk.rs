//! A file system that loses what was not flushed, as ext4 with its default mount options does.
//!
//! Names, sizes and modes are in a journal, whose entries are committed in order: by every flush that needs one of them,
//! or at any time. Data of a file is on disk once the file was flushed; before, any part of it may be. A file that
//! replaces another one by a rename has its data on disk before the rename (`auto_da_alloc`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::operation::{FileId, Operation};

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    File(FileId),
    /// With its mode.
    Directory(u32),
}

/// A parent is sorted before its children.
pub type Names = BTreeMap<PathBuf, Entry>;
pub type Content = Arc<Vec<u8>>;

/// The contents of one file.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// The first name that it had.
    pub name: PathBuf,
    pub mode: u32,
    /// What the program reads.
    pub live: Content,
    /// What is certainly on disk.
    pub durable: Content,
    /// Changes of its length that are not committed.
    resizes: Vec<u64>,
    /// Whether the journal has entries that are needed to read its data.
    needs_commit: bool,
}

impl File {
    /// What is on disk if the journal is committed now, without a flush.
    pub fn committed(&self) -> Content {
        let mut content = Arc::clone(&self.durable);
        for length in &self.resizes {
            Arc::make_mut(&mut content).resize(usize::try_from(*length).expect("a length in memory"), 0);
        }
        content
    }

    /// Whether a crash can lose data.
    pub fn is_dirty(&self) -> bool {
        self.live != self.durable
    }
}

/// The state after some operations.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// As the program sees them.
    pub live: Names,
    /// In the committed journal.
    pub committed: Names,
    /// In directories that were flushed: all that POSIX promises.
    pub flushed: Names,
    pub files: Vec<File>,
    /// Flushes of files whose name ends with this do nothing.
    ignored_flush: Option<String>,
    /// What is below this is on another host, which does not crash.
    survivor: Option<PathBuf>,
}

impl Disk {
    /// An empty one. Flushes of files whose name ends with `ignored_flush` do nothing.
    pub fn new(ignored_flush: Option<String>) -> Self {
        Self { ignored_flush, ..Self::default() }
    }

    /// With a directory that is on another host, which does not crash.
    pub fn with_survivor(self, survivor: Option<PathBuf>) -> Self {
        Self { survivor, ..self }
    }

    /// Whether a crash does not change what is at a path.
    pub fn survives(&self, path: &Path) -> bool {
        self.survivor.as_ref().is_some_and(|survivor| path.starts_with(survivor))
    }

    /// A file of which a crash can lose data.
    pub fn can_lose(&self, file: FileId) -> bool {
        self.files[file].is_dirty() && !self.survives(&self.files[file].name)
    }

    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { path, file, mode } => {
                assert_eq!(*file, self.files.len(), "files are numbered in order");
                self.files.push(File { name: path.clone(), mode: *mode, needs_commit: true, ..File::default() });
                self.live.insert(path.clone(), Entry::File(*file));
            }
            Operation::CreateDirectory { path, mode } => {
                self.live.insert(path.clone(), Entry::Directory(*mode));
            }
            Operation::Write { file, offset, bytes } => self.files[*file].write(*offset, bytes),
            Operation::Resize { file, length } => {
                let file = &mut self.files[*file];
                Arc::make_mut(&mut file.live).resize(usize::try_from(*length).expect("a length in memory"), 0);
                file.resizes.push(*length);
                file.needs_commit = true;
            }
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::Link { from, to } => {
                let entry = self.live[from];
                self.live.insert(to.clone(), entry);
            }
            Operation::Remove { path } => {
                self.live.remove(path);
            }
            Operation::SetMode { path, mode } => match self.live.get_mut(path) {
                Some(Entry::Directory(current)) => *current = *mode,
                Some(Entry::File(file)) => self.files[*file].mode = *mode,
                None => {}
            },
            Operation::Flush { file, only_data } => self.flush(*file, *only_data),
            Operation::FlushDirectory { path } => {
                self.commit();
                self.flushed.retain(|name, _| name.parent() != Some(path));
                let children = self.live.iter().filter(|(name, _)| name.parent() == Some(path));
                self.flushed.extend(children.map(|(name, entry)| (name.clone(), *entry)));
            }
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        if let (Some(Entry::File(replaced)), Some(Entry::File(file))) = (self.live.get(to), self.live.get(from)) {
            if replaced == file {
                return;
            }
            let file = &mut self.files[*file];
            file.durable = Arc::clone(&file.live);
            file.resizes.clear();
        }
        let moved: Vec<_> = self.live.keys().filter(|name| name.starts_with(from)).cloned().collect();
        for name in moved {
            let entry = self.live.remove(&name).expect("a name of the list");
            let rest = name.strip_prefix(from).expect("a name below it");
            let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            self.live.insert(target, entry);
        }
    }

    fn flush(&mut self, id: FileId, only_data: bool) {
        let ignored = |ending: &String| self.files[id].name.to_string_lossy().ends_with(ending.as_str());
        if self.ignored_flush.as_ref().is_some_and(ignored) {
            return;
        }
        if self.files[id].needs_commit || (!only_data && self.files[id].is_dirty()) {
            self.commit();
        }
        let file = &mut self.files[id];
        file.durable = Arc::clone(&file.live);
        file.resizes.clear();
    }

    fn commit(&mut self) {
        self.committed.clone_from(&self.live);
        for file in &mut self.files {
            file.durable = file.committed();
            file.resizes.clear();
            file.needs_commit = false;
        }
    }
}

impl File {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let before = self.live.len();
        overwrite(Arc::make_mut(&mut self.live), offset, bytes);
        self.needs_commit |= self.live.len() > before;
    }
}

/// Writes bytes, with zeros before them if the content is shorter.
pub fn overwrite(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let from = usize::try_from(offset).expect("a length in memory");
    let to = from + bytes.len();
    if content.len() < to {
        content.resize(to, 0);
    }
    content[from..to].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(operations: &[Operation]) -> Disk {
        let mut disk = Disk::default();
        for operation in operations {
            disk.apply(operation);
        }
        disk
    }

    fn create(path: &str, file: FileId) -> Operation {
        Operation::Create { path: path.into(), file, mode: 0o600 }
    }

    fn write(file: FileId, offset: u64, text: &str) -> Operation {
        Operation::Write { file, offset, bytes: text.as_bytes().to_vec() }
    }

    fn flush(file: FileId) -> Operation {
        Operation::Flush { file, only_data: true }
    }

    #[test]
    fn unflushed_data_and_names_may_be_lost() {
        let disk = disk(&[create("a", 0), write(0, 0, "old"), flush(0), write(0, 3, " new"), create("b", 1)]);
        assert_eq!(disk.files[0].durable.as_slice(), b"old");
        assert_eq!(disk.files[0].live.as_slice(), b"old new");
        assert_eq!(disk.committed.keys().collect::<Vec<_>>(), [Path::new("a")]);
        assert_eq!(disk.live.len(), 2);
        assert!(disk.flushed.is_empty(), "POSIX promises names of flushed directories only");
    }

    #[test]
    fn only_a_flush_that_needs_the_journal_commits_names() {
        let overwritten = [create("a", 0), write(0, 0, "old"), flush(0), create("b", 1), write(0, 0, "new"), flush(0)];
        assert!(!disk(&overwritten).committed.contains_key(Path::new("b")));
        let appended = [create("a", 0), write(0, 0, "old"), flush(0), create("b", 1), write(0, 3, "new"), flush(0)];
        assert!(disk(&appended).committed.contains_key(Path::new("b")));
    }

    #[test]
    fn replacing_rename_writes_the_data_first() {
        let rename = |to: &str| Operation::Rename { from: "draft".into(), to: to.into() };
        let draft = [create("a", 0), create("draft", 1), write(1, 0, "text")];
        let replaced = disk(&[&draft[..], &[rename("a")]].concat());
        assert_eq!(replaced.files[1].durable.as_slice(), b"text");
        assert_eq!(replaced.live.get(Path::new("a")), Some(&Entry::File(1)));
        let new = disk(&[&draft[..], &[rename("b")]].concat());
        assert!(new.files[1].is_dirty(), "a new name may appear before the data");
    }

    #[test]
    fn committed_length_reads_as_zeros() {
        let disk = disk(&[create("a", 0), write(0, 0, "text"), Operation::Resize { file: 0, length: 6 }]);
        assert_eq!(disk.files[0].committed().as_slice(), [0; 6]);
    }

    #[test]
    fn ignored_flush_does_nothing() {
        let mut disk = Disk::new(Some("-wal".to_owned()));
        for operation in [create("db-wal", 0), write(0, 0, "frame"), flush(0)] {
            disk.apply(&operation);
        }
        assert!(disk.files[0].is_dirty());
    }
}
