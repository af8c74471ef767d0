//! Asking again until there is an answer.

use std::time::Duration;

use tokio::sync::watch;

use super::ApiError;
use crate::backoff::Backoff;
use crate::clock;

/// A refused token may be a proxy's mistake: so often it is tried again.
const REFUSED_TRIES: u32 = 5;

/// Tells whoever waits to try again that the orchestrator is back.
#[derive(Debug)]
pub struct Online(watch::Sender<u64>);

impl Default for Online {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Online {
    /// It was reached again.
    pub fn announce(&self) {
        self.0.send_modify(|times| *times += 1);
    }

    /// Waits, but not longer than until it is reached again.
    pub async fn pause(&self, longest: Duration) {
        let mut back = self.0.subscribe();
        // The sender lives as long as `self`; an error cannot come.
        let _ = tokio::time::timeout(longest, back.changed()).await;
    }
}

/// Calls until the answer is no longer "try again".
///
/// # Errors
/// Whatever trying again does not change.
pub async fn until_answered<T, F>(online: &Online, what: &str, mut call: F) -> Result<T, ApiError>
where
    F: AsyncFnMut() -> Result<T, ApiError>,
{
    let mut backoff = Backoff::default();
    let mut refused = 0;
    loop {
        let (error, after) = match call().await {
            Err(ApiError::Transient { sentence, retry_after }) => (sentence, retry_after),
            Err(ApiError::Answer(sentence) | ApiError::Untrusted(sentence)) => (sentence, None),
            Err(ApiError::Refused(sentence)) if refused < REFUSED_TRIES => {
                refused += 1;
                (sentence, None)
            }
            answered => return answered,
        };
        let wait = backoff.next_after(clock::roll(), after);
        tracing::warn!("{what}: {error}; trying again in {} s", wait.as_secs_f32().round());
        online.pause(wait).await;
    }
}
