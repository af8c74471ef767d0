//! State in memory, and what it may be used for.

pub mod access;
pub mod changed_rows;
pub mod fleet_worker;
#[cfg(test)]
mod planning_tests;
mod queue;
pub mod read;
pub(super) mod revisions;
pub mod shares;
pub mod snapshot;
pub mod state;
pub mod writer;
