//! How many bytes the files of people's jobs have, as of a minute ago at most: a sum over all of them is too much for each
//! file that comes. What has come since is added.

use std::collections::HashMap;
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};

/// How long a sum counts.
const LIFE: Millis = Millis::seconds(60);

/// See the module.
#[derive(Debug, Default)]
pub struct FileBytes(Mutex<HashMap<String, (Timestamp, u64)>>);

impl FileBytes {
    /// A person's, if it was summed up lately.
    pub fn recent(&self, person: &str, now: Timestamp) -> Option<u64> {
        let mut people = self.0.lock().expect("no panic while it is held");
        people.retain(|_, (at, _)| now - *at < LIFE);
        people.get(person).map(|(_, bytes)| *bytes)
    }

    /// Keeps a sum; returns it.
    pub fn note(&self, person: &str, bytes: u64, now: Timestamp) -> u64 {
        self.0.lock().expect("no panic while it is held").insert(person.to_owned(), (now, bytes));
        bytes
    }

    /// A file of so many bytes was stored.
    pub fn add(&self, person: &str, new: u64) {
        if let Some((_, bytes)) = self.0.lock().expect("no panic while it is held").get_mut(person) {
            *bytes = bytes.saturating_add(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_counts_for_a_minute_with_what_came_since() {
        let (sums, start) = (FileBytes::default(), Timestamp(1_000));
        sums.add("ada", 5);
        assert_eq!(sums.recent("ada", start), None);
        sums.note("ada", 10, start);
        sums.add("ada", 5);
        assert_eq!((sums.recent("ada", start), sums.recent("bob", start)), (Some(15), None));
        assert_eq!(sums.recent("ada", start + LIFE), None);
    }
}
