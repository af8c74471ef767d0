//! Revisions of configurations that were read before. One never changes once it is committed, on whichever server, so
//! what is here cannot be wrong.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::store::configs::StoredConfig;

/// So many are kept; jobs that wait together mostly share theirs.
const MOST: usize = 64;

/// See the module.
#[derive(Default)]
pub struct Revisions(Mutex<HashMap<String, HashMap<u32, Arc<StoredConfig>>>>);

impl Revisions {
    /// One of them, if it is here.
    pub fn get(&self, name: &str, revision: u32) -> Option<Arc<StoredConfig>> {
        self.0.lock().expect("no panic while it is held").get(name)?.get(&revision).cloned()
    }

    /// Keeps one that is committed.
    pub fn put(&self, config: &Arc<StoredConfig>) {
        let mut known = self.0.lock().expect("no panic while it is held");
        if known.values().map(HashMap::len).sum::<usize>() >= MOST {
            known.clear();
        }
        known.entry(config.name.clone()).or_default().insert(config.revision, Arc::clone(config));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    #[test]
    fn it_forgets_before_it_grows_too_large() {
        let revisions = Revisions::default();
        let config = |revision: u32| {
            let (name, sha256) = ("digits".to_owned(), String::new());
            Arc::new(StoredConfig {
                name,
                revision,
                sha256,
                files: [].into(),
                created_at: Timestamp(0),
                created_by: None,
                owner: None,
            })
        };
        for number in 1..=65 {
            revisions.put(&config(number));
        }
        assert_eq!(revisions.get("digits", 65), Some(config(65)));
        assert_eq!((revisions.get("digits", 64), revisions.get("other", 65)), (None, None));
    }
}
