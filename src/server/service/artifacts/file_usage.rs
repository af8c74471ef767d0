//! The total size of files per user, cached for a minute: a sum over all files is too slow for each upload. Sizes of
//! new files are added.

use std::collections::HashMap;
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};

/// How long a sum is cached.
const TTL: Millis = Millis::from_secs(60);

#[derive(Debug, Default)]
pub struct FileUsageCache(Mutex<HashMap<String, (Timestamp, u64)>>);

impl FileUsageCache {
    pub fn get(&self, user: &str, now: Timestamp) -> Option<u64> {
        let mut users = self.0.lock().expect("no panic while it is held");
        users.retain(|_, (at, _)| now - *at < TTL);
        users.get(user).map(|(_, bytes)| *bytes)
    }

    pub fn insert(&self, user: &str, bytes: u64, now: Timestamp) -> u64 {
        self.0.lock().expect("no panic while it is held").insert(user.to_owned(), (now, bytes));
        bytes
    }

    /// Adds the size of a stored file.
    pub fn add_bytes(&self, user: &str, new: u64) {
        if let Some((_, bytes)) = self.0.lock().expect("no panic while it is held").get_mut(user) {
            *bytes = bytes.saturating_add(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_is_cached_for_a_minute_with_new_files_added() {
        let (sums, start) = (FileUsageCache::default(), Timestamp(1_000));
        sums.add_bytes("ada", 5);
        assert_eq!(sums.get("ada", start), None);
        sums.insert("ada", 10, start);
        sums.add_bytes("ada", 5);
        assert_eq!((sums.get("ada", start), sums.get("bob", start)), (Some(15), None));
        assert_eq!(sums.get("ada", start + TTL), None);
    }
}
