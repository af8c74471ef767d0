//! Retries requests until there is an answer.

use std::time::Duration;

use tokio::sync::watch;

use super::OrchestratorError;
use crate::backoff::Backoff;
use crate::clock;

/// A proxy may reject a token by mistake, so a rejection is retried this often.
const MAX_UNAUTHORIZED_TRIES: u32 = 5;

/// Wakes waiting retries when the orchestrator can be reached again.
#[derive(Debug)]
pub struct ReconnectSignal(watch::Sender<u64>);

impl Default for ReconnectSignal {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl ReconnectSignal {
    pub fn notify(&self) {
        self.0.send_modify(|times| *times += 1);
    }

    /// Waits for `longest`, or until the orchestrator can be reached again.
    pub async fn wait_or_reconnect(&self, longest: Duration) {
        let mut back = self.0.subscribe();
        // Cannot fail: the sender lives as long as `self`.
        let _ = tokio::time::timeout(longest, back.changed()).await;
    }
}

/// Repeats a request while its error is retryable.
///
/// # Errors
/// Those that are not retryable.
pub async fn retry_until_answered<T, F>(
    online: &ReconnectSignal,
    operation: &str,
    mut call: F,
) -> Result<T, OrchestratorError>
where
    F: AsyncFnMut() -> Result<T, OrchestratorError>,
{
    let mut backoff = Backoff::default();
    let mut rejected = 0;
    loop {
        let (error, after) = match call().await {
            Err(OrchestratorError::Transient { sentence, retry_after }) => (sentence, retry_after),
            Err(OrchestratorError::InvalidResponse(sentence) | OrchestratorError::UntrustedCertificate(sentence)) => {
                (sentence, None)
            }
            Err(OrchestratorError::Unauthorized(sentence)) if rejected < MAX_UNAUTHORIZED_TRIES => {
                rejected += 1;
                (sentence, None)
            }
            answered => return answered,
        };
        let wait = backoff.next_delay_after(clock::random_u64(), after);
        tracing::warn!("{operation}: {error}; retrying in {} s", wait.as_secs_f32().round());
        online.wait_or_reconnect(wait).await;
    }
}
