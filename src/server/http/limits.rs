//! How large bodies may be, in bytes.

/// An API call.
pub const API: usize = 256 << 10;
/// A heartbeat: at most 12 moments of 64 GPUs.
pub const HEARTBEAT: usize = 1 << 20;
/// A configuration: its text, with room for JSON's escapes.
pub const CONFIG: usize = 2 * crate::service::configs::MAX_BUNDLE;
/// A piece of a log.
pub const LOG_PIECE: usize = 1 << 20;
/// A batch of progress points, or a list of a checkpoint's files.
pub const PROGRESS: usize = 2 << 20;
