//! The rules of the product as pure, total functions on plain data.
//!
//! Nothing in this module reads a clock, generates random numbers, or does I/O: time and randomness are parameters, so
//! every decision can be tested with tables.

pub mod access;
pub mod alerts;
pub mod allowed_values;
pub mod audit;
pub mod audit_action;
pub mod best_metrics;
pub mod capability;
pub mod causes;
pub mod config_check;
pub mod config_files;
pub mod disk_watermark;
pub mod executable_files;
pub mod exit_diagnosis;
pub mod explain;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod fleet_tests;
pub mod fuzzy;
pub mod glob;
pub mod gpu;
pub mod host_failure_guard;
pub mod ids;
pub mod job;
pub mod job_comparison;
pub mod job_search;
pub mod job_share;
pub mod job_status;
pub mod labels;
pub mod liveness;
pub mod log_text;
pub mod matching;
pub mod network;
pub mod notice;
pub mod parallel_axes;
pub mod passkey;
pub mod password;
pub mod path_placeholders;
pub mod plan;
pub mod preemption;
pub mod priority;
pub mod rate_limit;
pub mod reconcile;
pub mod retry;
pub mod sample_names;
pub mod sample_votes;
pub mod sandbox;
pub mod search_terms;
pub mod second_factor;
pub mod secret;
pub mod shares;
pub mod text;
pub mod time;
pub mod trace_context;
pub mod unassigned_run;
pub mod usage;
pub mod worker;
pub mod worker_search;
