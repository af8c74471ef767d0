//! A host that leaves, but has something to finish: it does not listen any more, so it is offered nothing, and says
//! good-bye, so that what it was offered goes elsewhere. What it runs stays its own, and it goes on to beat: more often, as
//! nothing else brings it a cancel.

use std::time::Duration;

use app::protocol::worker::Disconnect;

use super::Session;

/// Between two heartbeats then.
pub const BEAT: Duration = Duration::from_secs(1);

impl Session {
    /// Whether this host takes nothing more.
    pub(super) fn is_closed(&self) -> bool {
        *self.turned_away.borrow() > 0
    }

    /// Gives back what was offered here. The next registration says what is still run.
    pub(super) async fn turn_away(&self) {
        let left_running = self.attempts.borrow().clone();
        let Some(worker_id) = self.worker_id() else { return };
        let body = Disconnect { worker_id: Some(worker_id), left_running };
        match self.context.api.disconnect(&body).await {
            Ok(()) => tracing::info!("taking nothing more, {} attempt(s) to finish", body.left_running.len()),
            // An offer that nobody answers goes back after a while.
            Err(error) => tracing::warn!("could not say that nothing more is taken: {error}"),
        }
    }
}
