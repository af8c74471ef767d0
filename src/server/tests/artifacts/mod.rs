//! Files of jobs.

mod checkpoints;
mod files;
mod reassigned_attempt;
mod uploads;
