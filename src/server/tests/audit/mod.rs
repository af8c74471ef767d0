//! The audit log.

mod log;
