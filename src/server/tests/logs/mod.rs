//! Logs of jobs.

mod gaps;
mod lines;
mod ranks;
