//! The HTTP layer in process: real routes, a real database, and a manual clock. One file per area.

mod access;
mod agents;
mod api_contract;
mod artifacts;
mod audit;
mod bulk;
mod configs;
mod edge;
mod gpus;
pub mod harness;
mod jobs;
mod logs;
mod system;
mod ui;
mod workers;

mod openapi;
mod search;
mod secrets;
mod shares;
mod usage;
