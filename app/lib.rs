//! Code shared by the server, the agent and the browser.
//!
//! * [`domain`]: the rules. Pure: no clock, no randomness, no I/O.
//! * [`protocol`]: the types that cross a process boundary.
//! * `command_line` (`native`): shared by the command lines of both programs.
//! * `logging` (`native`): the log format of both programs.
//! * `simulation`: time and randomness of a simulation (`simulation`).
//! * `time_zone`: the time zone database (`ssr`).
//! * `threads` (`native`): work that other threads do for a task.
//! * `remote`: how a client verifies its orchestrator (`worker`, `cli`).
//! * `ui`: the dashboard, rendered on the server (`ssr`) and hydrated in the browser (`hydrate`).

// Views are deeply nested types.
#![recursion_limit = "512"]

#[cfg(feature = "native")]
pub mod command_line;
pub mod domain;
#[cfg(feature = "native")]
pub mod logging;
pub mod protocol;
#[cfg(feature = "simulation")]
pub mod simulation;
#[cfg(feature = "native")]
pub mod threads;
#[cfg(feature = "ssr")]
pub mod time_zone;
mod words;

#[cfg(feature = "remote")]
pub mod remote;

#[cfg(any(feature = "ssr", feature = "hydrate"))]
pub mod ui;

#[cfg(feature = "hydrate")]
pub mod hydrate;
