//! The SHA-256 of files that are being written, as far as they are: what is large is not read once more when it is whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::tokens::hex;

/// Of so many files at most; others are read when they are whole.
const MOST: usize = 1_024;
const BLOCK: usize = 256 << 10;

/// See the module. It is of the bytes that this server has written itself, each after those before it.
#[derive(Clone, Default)]
pub struct Hashes(Arc<Mutex<HashMap<PathBuf, (Sha256, u64)>>>);

impl Hashes {
    /// That of a file that is so long; none if not all of it is known. Nothing is known of the file then, until it is put
    /// back.
    pub fn take(&self, path: &Path, size: u64) -> Option<Sha256> {
        let known = self.0.lock().expect("no panic while it is held").remove(path);
        if size == 0 {
            return Some(Sha256::new());
        }
        known.filter(|(_, known)| *known == size).map(|(hash, _)| hash)
    }

    /// That of a file which is so long by now.
    pub fn put(&self, path: PathBuf, hash: Sha256, size: u64) {
        let mut known = self.0.lock().expect("no panic while it is held");
        if known.len() < MOST {
            known.insert(path, (hash, size));
        }
    }

    /// Forgets a file that is gone, or all below a directory.
    pub fn forget(&self, path: &Path) {
        self.0.lock().expect("no panic while it is held").retain(|known, _| !known.starts_with(path));
    }
}

/// That of all of a file, in hex, by reading it.
pub fn whole(file: &mut File) -> io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
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
    fn a_hash_is_known_as_long_as_nobody_else_writes() {
        let hashes = Hashes::default();
        let (a, b) = (Path::new("job/a"), Path::new("job/b"));
        let begun = hashes.take(a, 0).expect("of nothing it is known").chain_update("one");
        hashes.put(a.to_owned(), begun, 3);
        hashes.put(b.to_owned(), Sha256::new().chain_update("b"), 1);
        assert!(hashes.take(b, 2).is_none(), "somebody else has written");
        assert!(hashes.take(b, 1).is_none(), "what is taken is not there");
        let taken = hashes.take(a, 3).expect("all of it");
        assert_eq!(taken.clone().finalize(), Sha256::digest("one"));
        hashes.put(a.to_owned(), taken, 3);
        hashes.forget(Path::new("job"));
        assert!(hashes.take(a, 3).is_none());
        for n in 0..=MOST {
            hashes.put(PathBuf::from(n.to_string()), Sha256::new(), 1);
        }
        assert!(hashes.take(Path::new(&MOST.to_string()), 1).is_none(), "there is a bound");
    }
}
