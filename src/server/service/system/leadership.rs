//! Leadership: only one of the servers on a database judges workers and cleans up.

use std::sync::{Arc, Mutex};

use crate::service::error::ServiceError;
use crate::service::system::SystemService;
use crate::store::TransactionWork;

impl SystemService {
    /// Records that this server is alive, renews or acquires the leadership, and, as leader, clears the streams of
    /// servers that have stopped.
    pub async fn renew_leadership(self: &Arc<Self>) -> Result<(), ServiceError> {
        let result = Arc::new(Mutex::new((Vec::new(), false)));
        let result_slot = Arc::clone(&result);
        let (life, term) = (self.context.policy.server_life, self.context.policy.leader_term);
        let work: TransactionWork = Box::new(move |tx| {
            let result_slot = Arc::clone(&result_slot);
            Box::pin(async move {
                let live_servers = tx.heartbeat_server(life).await?;
                let leads = tx.try_lead(term).await?;
                *result_slot.lock().expect("no panic while it is held") = (live_servers, leads);
                Ok(())
            })
        });
        let written = self.context.store.write(work).await;
        let (live_servers, leads) = std::mem::take(&mut *result.lock().expect("no panic while it is held"));
        self.context.leadership.record_database(written.is_ok(), self.context.now());
        // Without the database a server does not know whether it is still the leader.
        self.context.leadership.set_leads(written.is_ok() && leads, self.context.now());
        written?;
        if leads { self.agents.drop_dead_streams(live_servers).await } else { Ok(()) }
    }

    /// Loads the live state into memory, so that reads find it there from the first request on.
    pub async fn warm_cache(&self) -> Result<(), ServiceError> {
        Ok(self.context.store.write(Box::new(|tx| Box::pin(async move { tx.with_state(|_| ()).await }))).await?)
    }

    /// Gives up the leadership at shutdown, so that another server can take over immediately.
    pub async fn resign(&self) -> Result<(), ServiceError> {
        Ok(self.context.store.write(Box::new(|tx| Box::pin(async move { tx.remove_server().await }))).await?)
    }
}
