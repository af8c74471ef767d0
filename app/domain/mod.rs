//! The rules of the product as pure, total functions over plain data.
//!
//! Nothing in here reads a clock, draws a random number, or does I/O: time and randomness are
//! parameters, so every decision can be tested as a table.

pub mod access;
pub mod astray;
pub mod attention;
pub mod audit;
pub mod capability;
pub mod code;
pub mod config_files;
pub mod config_paths;
pub mod ending;
pub mod explain;
pub mod factor;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod fleet_tests;
pub mod fuzzy;
pub mod glob;
pub mod gpu;
pub mod health;
pub mod ids;
pub mod job;
pub mod labels;
pub mod log_text;
pub mod matching;
pub mod network;
pub mod notice;
pub mod passkey;
pub mod password;
pub mod plan;
pub mod queue;
pub mod rate;
pub mod reconcile;
pub mod retry;
pub mod roster;
pub mod sandbox;
pub mod secret;
pub mod text;
pub mod time;
pub mod trace;
pub mod usage;
pub mod watermark;
pub mod worker;
