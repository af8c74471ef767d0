//! Closes the session of a host that is leaving but still has something to finish: it stops listening, so it gets no
//! offers, and sends a disconnect, so that its offers go elsewhere. It keeps its running jobs and keeps sending
//! heartbeats, more often, because only their responses contain cancels.

use std::time::Duration;

use app::protocol::agents::DisconnectRequest;

use super::AgentSession;

/// Interval of heartbeats while closing.
pub const CLOSING_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

impl AgentSession {
    /// Whether this host accepts no more jobs.
    pub(super) fn is_closing(&self) -> bool {
        *self.decline_requests.borrow() > 0
    }

    /// Returns offers. The next registration lists what still runs.
    pub(super) async fn decline_offers(&self) {
        let left_running = self.attempts.borrow().clone();
        let Some(worker_id) = self.worker_id() else { return };
        let body = DisconnectRequest { worker_id: Some(worker_id), left_running };
        match self.context.api.disconnect(&body).await {
            Ok(()) => tracing::info!("accepting no more jobs, {} attempt(s) to finish", body.left_running.len()),
            // An offer without a response times out.
            Err(error) => tracing::warn!("cannot report that no more jobs are accepted: {error}"),
        }
    }
}
