//! Access to the live state.

use async_trait::async_trait;

use crate::store::cache::state::FleetState;
use crate::store::{Result, Tx};

pub type StateReader<'l> = dyn FnMut(&FleetState) + Send + 'l;

#[async_trait]
pub trait ReadState {
    /// Calls `reader` with the live state: a writer has it in memory, and a reader may use the committed snapshot. It
    /// blocks commits, so it must be short.
    async fn read_state(&mut self, reader: &mut StateReader<'_>) -> Result<()>;
}

impl dyn Tx + '_ {
    /// Returns the result of `read`.
    pub async fn with_state<R: Send>(&mut self, read: impl FnOnce(&FleetState) -> R + Send) -> Result<R> {
        let (mut read, mut result) = (Some(read), None);
        self.read_state(&mut |fleet_state| result = read.take().map(|read| read(fleet_state))).await?;
        Ok(result.expect("a read calls it once, or fails"))
    }
}
