//! The SHA-256 of partial files, so that a large file is not read again when it is complete.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::tokens::hex;

/// The maximum number of files; others are read when they are complete.
const MAX_FILES: usize = 1_024;
const BLOCK_BYTES: usize = 256 << 10;

/// Hashes of bytes that this server has written itself, in order.
#[derive(Clone, Default)]
pub struct PartialHashes(Arc<Mutex<HashMap<PathBuf, (Sha256, u64)>>>);

impl PartialHashes {
    /// Takes the hash of a file of this size; `None` if it is not complete. The file has no hash then until it is put
    /// back.
    pub fn take(&self, path: &Path, size: u64) -> Option<Sha256> {
        let hashed = self.0.lock().expect("no panic while it is held").remove(path);
        if size == 0 {
            return Some(Sha256::new());
        }
        hashed.filter(|(_, hashed_size)| *hashed_size == size).map(|(hash, _)| hash)
    }

    /// Puts back the hash of a file of this size.
    pub fn put(&self, path: PathBuf, hash: Sha256, size: u64) {
        let mut hashes = self.0.lock().expect("no panic while it is held");
        if hashes.len() < MAX_FILES {
            hashes.insert(path, (hash, size));
        }
    }

    /// Forgets a removed file, or all below a directory.
    pub fn forget(&self, path: &Path) {
        self.0.lock().expect("no panic while it is held").retain(|hashed_path, _| !hashed_path.starts_with(path));
    }
}

/// Computes the hash of a whole file, in hex.
pub fn hash_file(file: &mut File) -> io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => hash.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_known_until_another_writer_appends() {
        let hashes = PartialHashes::default();
        let (a, b) = (Path::new("job/a"), Path::new("job/b"));
        let hash = hashes.take(a, 0).expect("the hash of no bytes").chain_update("one");
        hashes.put(a.to_owned(), hash, 3);
        hashes.put(b.to_owned(), Sha256::new().chain_update("b"), 1);
        assert!(hashes.take(b, 2).is_none(), "another writer has appended");
        assert!(hashes.take(b, 1).is_none(), "a taken hash is removed");
        let hash = hashes.take(a, 3).expect("the hash of all bytes");
        assert_eq!(hash.clone().finalize(), Sha256::digest("one"));
        hashes.put(a.to_owned(), hash, 3);
        hashes.forget(Path::new("job"));
        assert!(hashes.take(a, 3).is_none());
        for n in 0..=MAX_FILES {
            hashes.put(PathBuf::from(n.to_string()), Sha256::new(), 1);
        }
        assert!(hashes.take(Path::new(&MAX_FILES.to_string()), 1).is_none(), "the number is limited");
    }
}
