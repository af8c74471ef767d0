//! How the agent reports its state: to its service manager, in a terminal, and by exiting when idle.

mod container_init;
mod idle_timer;
mod sd_notify;
mod shared_status;
mod start;
mod status_line;
mod status_reporter;
pub mod terminal;

pub use shared_status::SharedStatus;
pub use start::{report_fatal, run_agent};
pub use status_reporter::StatusReporter;
