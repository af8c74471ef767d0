//! Files of jobs.

mod checkpoints;
mod downloads;
mod files;
mod reassigned_attempt;
mod uploads;
