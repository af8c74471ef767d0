//! Writes the lease of an exclusive job for its supervisor, which enforces it without the agent.

use app::threads::run_io;

use super::AttemptRunner;
use crate::worker::files::LeaseRecord;

impl AttemptRunner {
    /// Waits until there is a lease. Before that, the trainer of an exclusive job must not start.
    pub(super) async fn wait_for_lease(&self) {
        if !self.spec.offer.exclusive {
            return;
        }
        let mut leases = self.context.api.lease.subscribe();
        // Cannot fail: the API client owns the sender and lives as long as this.
        let first = leases.wait_for(Option::is_some).await.map(|lease| *lease);
        if let Ok(Some(lease)) = first {
            self.write_lease(lease).await;
        }
    }

    /// Keeps the written lease up to date while the trainer runs.
    pub(super) async fn maintain_lease(&self) {
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

    async fn write_lease(&self, lease: LeaseRecord) {
        let dir = self.dir.clone();
        if let Err(error) = run_io(move || dir.write_lease(&lease)).await {
            tracing::error!("{}: cannot write its lease, so its trainer will be stopped: {error}", self.key());
        }
    }
}
