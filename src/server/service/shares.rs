//! How much of something each person has at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many for each person. Of whom nothing is held, nothing is kept.
#[derive(Debug)]
pub struct Shares {
    each: usize,
    people: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// One of a person's share, until it is dropped.
pub type Share = OwnedSemaphorePermit;

impl Shares {
    /// So many for each.
    pub fn of_each(each: usize) -> Self {
        Self { each: each.clamp(1, Semaphore::MAX_PERMITS), people: Mutex::default() }
    }

    /// Waits until the person has one left.
    pub async fn wait_for(&self, person: &str) -> Share {
        self.of(person).acquire_owned().await.expect("it is never closed")
    }

    /// Takes one, if the person has one left.
    pub fn take(&self, person: &str) -> Option<Share> {
        self.of(person).try_acquire_owned().ok()
    }

    /// How many each has.
    pub fn each(&self) -> usize {
        self.each
    }

    fn of(&self, person: &str) -> Arc<Semaphore> {
        let mut people = self.people.lock().expect("no panic while it is held");
        // Those that nobody holds or waits for.
        people.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = people.entry(person.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.each)));
        Arc::clone(semaphore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_person_has_a_share_and_takes_no_memory_without_it() {
        let shares = Shares::of_each(2);
        let (first, _second) = (shares.take("ada"), shares.take("ada"));
        assert!(first.is_some() && shares.take("ada").is_none() && shares.take("bob").is_some());
        drop(first);
        assert!(shares.take("ada").is_some());
        for n in 0..100 {
            drop(shares.take(&format!("person-{n}")));
        }
        assert_eq!(shares.people.lock().expect("no panic").len(), 2, "hers, and the newest");
    }
}
