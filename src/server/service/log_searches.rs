//! Who searches logs at the same time: a few in all, and fewer of one person, so that nobody waits for another's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, Shares};

/// The limits, and who uses them.
#[derive(Debug)]
pub struct LogSearches {
    all: Arc<Semaphore>,
    people: Shares,
}

/// The right to search, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _person: Share,
    _all: Option<OwnedSemaphorePermit>,
}

impl LogSearches {
    /// So many at once in all, and of one person, who never has all of them.
    pub fn new(all: usize, per_person: usize) -> Self {
        let all = all.clamp(2, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(all)), people: Shares::of_each(per_person.min(all - 1)) }
    }

    /// Waits for a turn to read lines without looking for anything: it only counts for its person.
    pub async fn reading(&self, person: &str) -> Turn {
        Turn { _person: self.people.wait_for(person).await, _all: None }
    }

    /// Waits for a turn to search. Whoever waits for their own earlier searches takes no place of others.
    pub async fn searching(&self, person: &str) -> Turn {
        let own = self.people.wait_for(person).await;
        let all = Arc::clone(&self.all).acquire_owned().await.expect("it is never closed");
        Turn { _person: own, _all: Some(all) }
    }
}

/// Tells work on another thread that nobody waits for it, when it is dropped.
#[derive(Debug, Default)]
pub struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// What that work looks at.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_person_never_takes_all_turns() {
        let searches = LogSearches::new(2, 9);
        let first = searches.searching("ada").await;
        let mut second = Box::pin(searches.searching("ada"));
        assert!(second.as_mut().now_or_never().is_none(), "hers wait for each other");
        let other = searches.searching("bob").now_or_never();
        assert!(other.is_some(), "and nobody else for them");
        assert!(searches.searching("cleo").now_or_never().is_none(), "two run in all");
        drop(first);
        assert!(second.now_or_never().is_some());
    }
}
