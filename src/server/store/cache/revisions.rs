//! A cache of configuration revisions. A committed revision is immutable on all servers, so the cache is never stale.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::store::configs::StoredConfig;

/// The maximum number of entries; waiting jobs mostly share theirs.
const MAX_NAMES: usize = 64;

#[derive(Default)]
pub struct RevisionCache(Mutex<HashMap<String, HashMap<u32, Arc<StoredConfig>>>>);

impl RevisionCache {
    /// Returns a cached revision.
    pub fn get(&self, name: &str, revision: u32) -> Option<Arc<StoredConfig>> {
        self.0.lock().expect("no panic while it is held").get(name)?.get(&revision).cloned()
    }

    /// Adds a committed revision.
    pub fn insert(&self, config: &Arc<StoredConfig>) {
        let mut by_name = self.0.lock().expect("no panic while it is held");
        if by_name.values().map(HashMap::len).sum::<usize>() >= MAX_NAMES {
            by_name.clear();
        }
        by_name.entry(config.name.clone()).or_default().insert(config.revision, Arc::clone(config));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    #[test]
    fn cache_size_is_limited() {
        let revisions = RevisionCache::default();
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
            revisions.insert(&config(number));
        }
        assert_eq!(revisions.get("digits", 65), Some(config(65)));
        assert_eq!((revisions.get("digits", 64), revisions.get("other", 65)), (None, None));
    }
}
