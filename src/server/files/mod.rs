//! Bytes that are too many for the database: logs and artifacts, below the data directory.

pub mod artifacts;
pub mod begun;
pub mod checkpoints;
pub mod gaps;
mod hashes;
pub mod key;
mod linked;
pub mod log_index;
pub mod log_lines;
pub mod logs;
pub mod operator;
pub mod uploads;
pub mod whole;
