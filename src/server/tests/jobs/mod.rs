//! Jobs, from submit to retention.

mod columns;
mod compare;
mod descriptions;
mod dispatch;
mod explain;
mod failure_reasons;
mod fencing_delay;
mod fields;
mod odd_input;
mod queue;
mod retention;
mod sample_votes;
mod search;
mod trace;
mod waiting_jobs;
