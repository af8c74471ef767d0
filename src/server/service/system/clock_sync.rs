//! Clock synchronization of servers that may share a database: they use the database's time, not that of their machine,
//! because a delay set by one server may be ended by another.

use app::domain::time::Millis;

use crate::clock::estimate_offset;
use crate::service::error::ServiceError;
use crate::service::system::SystemService;

/// A larger offset of the machine's clock is logged as a warning, because it makes logs misleading.
const MAX_UNLOGGED_OFFSET: Millis = Millis::from_secs(2);
const MAX_TRIES: u32 = 5;

impl SystemService {
    /// Synchronizes before anything is decided; tries several times.
    pub async fn sync_clock_at_start(&self) -> Result<(), ServiceError> {
        for _ in 0..MAX_TRIES {
            if self.sync_clock().await? {
                return Ok(());
            }
        }
        tracing::warn!("clock: the database answers too slowly; using this machine's clock until it answers in time");
        Ok(())
    }

    /// Follows the database's clock if it can be shared. Returns whether the response was received in time.
    pub async fn sync_clock(&self) -> Result<bool, ServiceError> {
        let mut tx = self.context.read().await?;
        let requested_at = self.context.now();
        let Some(database_time) = tx.database_time().await? else { return Ok(true) };
        let Some(ahead) = estimate_offset(requested_at, database_time, self.context.now()) else { return Ok(false) };
        if self.context.clock.follow(ahead) && ahead.0.abs() > MAX_UNLOGGED_OFFSET.0 {
            tracing::warn!(
                ahead_seconds = ahead.0 / 1_000,
                "clock: the clocks of the database and of this machine differ; using the database's; correct the wrong one"
            );
        }
        Ok(true)
    }
}
