//! The time by which a server goes whose database others may share: the database's, whatever its machine's clock says.
//! What one server keeps back until a moment, another may give away after it: so it has to be the same moment.

use app::domain::time::Millis;

use super::Core;
use super::refusal::Refusal;
use crate::clock::ahead;

/// A machine whose clock is further off than this should have it set, if only for the sake of its logs.
const WORTH_A_WORD: Millis = Millis::seconds(2);
/// How often the database is asked before anything is decided.
const TRIES: u32 = 5;

impl Core {
    /// Before anything is decided.
    pub async fn set_clock(&self) -> Result<(), Refusal> {
        for _ in 0..TRIES {
            if self.follow_clock().await? {
                return Ok(());
            }
        }
        tracing::warn!(
            "the database takes too long to tell its time; until it does, this server goes by its machine's clock"
        );
        Ok(())
    }

    /// Follows the database's clock, if there is one to share. Whether it was told in time.
    pub async fn follow_clock(&self) -> Result<bool, Refusal> {
        let mut tx = self.read().await?;
        let asked = self.now();
        let Some(theirs) = tx.shared_time().await? else { return Ok(true) };
        let Some(ahead) = ahead(asked, theirs, self.now()) else { return Ok(false) };
        if self.clock.follow(ahead) && ahead.0.abs() > WORTH_A_WORD.0 {
            tracing::warn!(
                ahead_seconds = ahead.0 / 1_000,
                "the database's clock and this machine's differ: this server goes by the database's; set the one that is wrong"
            );
        }
        Ok(true)
    }
}
