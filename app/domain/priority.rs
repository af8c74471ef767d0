//! Priorities of jobs.

/// The highest priority; 0 is the lowest.
pub const MAX_PRIORITY: u8 = 50;
/// The priority if a submit does not set one.
pub const DEFAULT_PRIORITY: u8 = 10;
