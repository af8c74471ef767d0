use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A semaphore per user. Users who hold nothing take no memory.
#[derive(Debug)]
pub struct PerUserLimiter {
    limit: usize,
    by_user: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A permit of a user's share, until it is dropped.
pub type PerUserPermit = OwnedSemaphorePermit;

impl PerUserLimiter {
    /// Sets the limit per user.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.clamp(1, Semaphore::MAX_PERMITS), by_user: Mutex::default() }
    }

    /// Waits for a permit of the user.
    pub async fn acquire(&self, user: &str) -> PerUserPermit {
        self.semaphore(user).acquire_owned().await.expect("it is never closed")
    }

    /// Takes a permit if the user has one left.
    pub fn try_acquire(&self, user: &str) -> Option<PerUserPermit> {
        self.semaphore(user).try_acquire_owned().ok()
    }

    /// The limit per user.
    pub fn limit(&self) -> usize {
        self.limit
    }

    fn semaphore(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.by_user.lock().expect("no panic while it is held");
        // Keeps those that are held or waited for.
        users.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.limit)));
        Arc::clone(semaphore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_a_limit_each_and_take_no_memory_when_idle() {
        let limiter = PerUserLimiter::new(2);
        let (first, _second) = (limiter.try_acquire("ada"), limiter.try_acquire("ada"));
        assert!(first.is_some() && limiter.try_acquire("ada").is_none() && limiter.try_acquire("bob").is_some());
        drop(first);
        assert!(limiter.try_acquire("ada").is_some());
        for n in 0..100 {
            drop(limiter.try_acquire(&format!("user-{n}")));
        }
        assert_eq!(limiter.by_user.lock().expect("no panic").len(), 2, "Ada's, and the newest");
    }
}
