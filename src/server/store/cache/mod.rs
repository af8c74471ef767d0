//! State in memory, and what it may be used for.

pub mod access;
pub mod changed_rows;
#[cfg(test)]
mod planning_tests;
mod queue;
pub mod read;
pub(super) mod revisions;
pub mod shares;
pub mod snapshot;
pub mod state;
pub mod writer;
