//! A log as a person reads it: lines out of a stream of text in which programs colour words and redraw progress bars.

mod ansi;
mod lines;

pub(crate) use ansi::Ink;
pub(crate) use lines::{Content, Line, Lines};
