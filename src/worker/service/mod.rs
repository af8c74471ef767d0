//! The agent for those who watch it: its service manager, a person at its terminal, and whoever pays for its host.

mod idle;
mod init;
mod notify;
mod seen;
mod start;
pub mod terminal;
mod watch;
mod words;

pub use seen::Shared;
pub use start::{say_last, start};
pub use watch::Watch;
