//! Limits of concurrent log searches: in total, and fewer per user, so that users do not block each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::access::per_user_limit::{PerUserLimiter, PerUserPermit};

#[derive(Debug)]
pub struct LogSearchLimiter {
    all: Arc<Semaphore>,
    per_user: PerUserLimiter,
}

/// The permit for a search, until it is dropped.
#[derive(Debug)]
pub struct LogSearchPermit {
    _user: PerUserPermit,
    _all: Option<OwnedSemaphorePermit>,
}

impl LogSearchLimiter {
    /// Limits searches in total, and per user to fewer than that.
    pub fn new(all: usize, per_user: usize) -> Self {
        let all = all.clamp(2, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(all)), per_user: PerUserLimiter::new(per_user.min(all - 1)) }
    }

    /// Waits for a permit to read lines without a search: only the user's limit counts.
    pub async fn acquire_read(&self, user: &str) -> LogSearchPermit {
        LogSearchPermit { _user: self.per_user.acquire(user).await, _all: None }
    }

    /// Waits for a permit to search. A user who waits for their own earlier searches takes no permit of others.
    pub async fn acquire_search(&self, user: &str) -> LogSearchPermit {
        let user_permit = self.per_user.acquire(user).await;
        let total_permit = Arc::clone(&self.all).acquire_owned().await.expect("it is never closed");
        LogSearchPermit { _user: user_permit, _all: Some(total_permit) }
    }
}

/// Stops work on another thread when it is dropped.
#[derive(Debug, Default)]
pub struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// The flag that this work reads.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
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
    async fn one_user_never_takes_all_permits() {
        let searches = LogSearchLimiter::new(2, 9);
        let first = searches.acquire_search("ada").await;
        let mut second = Box::pin(searches.acquire_search("ada"));
        assert!(second.as_mut().now_or_never().is_none(), "Ada's searches wait for each other");
        let other = searches.acquire_search("bob").now_or_never();
        assert!(other.is_some(), "and no other user waits for them");
        assert!(searches.acquire_search("cleo").now_or_never().is_none(), "two run in total");
        drop(first);
        assert!(second.now_or_never().is_some());
    }
}
