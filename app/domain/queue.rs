//! Numbers of the queue that people see and set.

/// The most urgent; 0 is the least.
pub const MAX_PRIORITY: u8 = 50;
/// What a submit has that says nothing of it.
pub const DEFAULT_PRIORITY: u8 = 10;
