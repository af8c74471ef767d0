//! The log viewer: splits output with colors and redrawn progress bars into lines, and caches, searches, and shows
//! them.

pub(crate) mod highlight;
pub(crate) mod line_cache;
pub(crate) mod search;
mod tail;
pub(crate) mod view_state;
pub(crate) mod viewport;

pub(crate) use tail::{LineContent, TailBuffer, TailLine};
