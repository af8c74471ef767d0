//! Data too large for the database: logs and artifacts, below the data directory.

pub mod artifacts;
pub mod atomic_write;
pub mod audit_checkpoints;
mod hard_links;
pub mod key_file;
pub mod log_facts;
pub mod log_gaps;
pub mod log_index;
pub mod log_lines;
mod log_times;
pub mod logs;
pub mod operator_file;
mod partial_hashes;
pub mod partial_uploads;
pub mod uploads;
pub mod zip;
