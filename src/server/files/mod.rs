//! Bytes that are too many for the database: logs and artifacts, below the data directory.

pub mod artifacts;
pub mod checkpoints;
pub mod gaps;
pub mod key;
pub mod logs;
pub mod operator;
pub mod uploads;
pub mod whole;
