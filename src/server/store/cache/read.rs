//! Access to the live state.

use async_trait::async_trait;

use crate::store::cache::state::FleetState;
use crate::store::{Result, Tx};

pub type StateReader<'l> = dyn FnMut(&FleetState) + Send + 'l;

#[async_trait]
pub trait ReadState {
    /// Calls `look` with the live state: a writer has it in memory, and a reader may use the committed snapshot. It blocks
    /// commits, so it must be short.
    async fn read_state(&mut self, look: &mut StateReader<'_>) -> Result<()>;
}

impl dyn Tx + '_ {
    /// Returns the result of `see`.
    pub async fn with_state<R: Send>(&mut self, see: impl FnOnce(&FleetState) -> R + Send) -> Result<R> {
        let (mut see, mut seen) = (Some(see), None);
        self.read_state(&mut |known| seen = see.take().map(|see| see(known))).await?;
        Ok(seen.expect("a read calls it once, or fails"))
    }
}
