//! What a recorder has recorded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::operation::{FileId, Operation};

/// What was recorded so far.
#[derive(Debug, Default)]
pub struct Recording {
    pub operations: Vec<Operation>,
    /// How many operations had ended when the response to a request was sent.
    pub responses: BTreeMap<String, usize>,
    /// How many files were created.
    pub files: usize,
    /// The files by inode number.
    pub inodes: HashMap<u64, FileId>,
}

/// A recording that a traced program extends while others read it.
#[derive(Debug, Clone, Default)]
pub struct SharedRecording(Arc<Mutex<Recording>>);

impl SharedRecording {
    pub fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Directories that exist before the programs start.
    pub fn add_directories(&self, paths: &[&str]) {
        let create = |path: &&str| Operation::CreateDirectory { path: path.into(), mode: 0o755 };
        self.lock().operations.extend(paths.iter().map(create));
    }

    /// How many operations have ended.
    pub fn length(&self) -> usize {
        self.lock().operations.len()
    }
}
