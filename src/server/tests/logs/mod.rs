//! Logs of jobs.

mod gaps;
mod job_logs;
mod lines;
mod ranks;
