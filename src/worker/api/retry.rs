//! Retries requests until there is a response.

use std::time::Duration;

use tokio::sync::watch;

use super::OrchestratorError;
use crate::worker::backoff::Backoff;
use crate::worker::clock;

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
        self.0.send_modify(|count| *count += 1);
    }

    /// Waits for `max_wait`, or until the orchestrator can be reached again.
    pub async fn wait_or_reconnect(&self, max_wait: Duration) {
        let mut reconnects = self.0.subscribe();
        // Cannot fail: the sender lives as long as `self`.
        let _ = tokio::time::timeout(max_wait, reconnects.changed()).await;
    }
}

/// Repeats a request while its error is retryable.
///
/// # Errors
/// Those that are not retryable.
pub async fn retry_until_answered<T, F>(
    reconnect_signal: &ReconnectSignal,
    operation: &str,
    mut call: F,
) -> Result<T, OrchestratorError>
where
    F: AsyncFnMut() -> Result<T, OrchestratorError>,
{
    let mut backoff = Backoff::default();
    let mut rejections = 0;
    loop {
        let (detail, retry_after) = match call().await {
            Err(OrchestratorError::Transient { detail, retry_after }) => (detail, retry_after),
            Err(OrchestratorError::InvalidResponse(detail) | OrchestratorError::UntrustedCertificate(detail)) => {
                (detail, None)
            }
            Err(OrchestratorError::Unauthorized(detail)) if rejections < MAX_UNAUTHORIZED_TRIES => {
                rejections += 1;
                (detail, None)
            }
            result => return result,
        };
        let delay = backoff.next_delay_after(clock::random_u64(), retry_after);
        tracing::warn!("{operation}: {detail}; retrying in {} s", delay.as_secs_f32().round());
        reconnect_signal.wait_or_reconnect(delay).await;
    }
}
