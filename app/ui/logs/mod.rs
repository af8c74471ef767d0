//! A log as a person reads it: lines out of a stream of text in which programs colour words and redraw progress bars.

pub(crate) mod frame;
mod lines;
pub(crate) mod marks;
pub(crate) mod search;
pub(crate) mod store;
pub(crate) mod wish;

pub(crate) use lines::{Content, Line, Lines};
