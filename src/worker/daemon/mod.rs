//! How the agent reports its state: to its service manager, in a terminal, and by exiting when idle.

pub mod container_init;
mod idle_timer;
mod sd_notify;
mod status_line;
mod status_reporter;

pub use status_reporter::StatusReporter;
