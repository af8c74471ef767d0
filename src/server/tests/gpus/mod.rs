//! GPUs: reports, history, and the fleet.

mod fleet;
mod history;
mod reports;
