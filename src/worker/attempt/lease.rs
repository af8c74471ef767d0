//! The lease of an exclusive job, written down for its supervisor, which acts on it without the agent.

use super::{Attempt, blocking};
use crate::files::Lease;

impl Attempt {
    /// Before the trainer can start: an exclusive job waits for a lease.
    pub(super) async fn first_lease(&self) {
        if !self.spec.offer.exclusive {
            return;
        }
        let mut leases = self.context.api.lease.subscribe();
        // The sender is in the API's client, which lives as long as this.
        let first = leases.wait_for(Option::is_some).await.map(|lease| *lease);
        if let Ok(Some(lease)) = first {
            self.write_lease(lease).await;
        }
    }

    /// While the trainer runs.
    pub(super) async fn keep_lease(&self) {
        if !self.spec.offer.exclusive {
            return;
        }
        let mut leases = self.context.api.lease.subscribe();
        loop {
            let lease = *leases.borrow_and_update();
            if let Some(lease) = lease {
                self.write_lease(lease).await;
            }
            if leases.changed().await.is_err() {
                return;
            }
        }
    }

    async fn write_lease(&self, lease: Lease) {
        let dir = self.dir.clone();
        if let Err(error) = blocking(move || dir.write_lease(&lease)).await {
            tracing::error!(
                "{}: its lease cannot be written down, so its trainer will be stopped: {error}",
                self.key()
            );
        }
    }
}
