//! A log as a person reads it: lines out of a stream of text in which programs colour words and redraw progress bars.

pub(crate) mod highlight;
pub(crate) mod line_cache;
pub(crate) mod search;
mod tail;
pub(crate) mod view_state;
pub(crate) mod viewport;

pub(crate) use tail::{LineContent, TailBuffer, TailLine};
