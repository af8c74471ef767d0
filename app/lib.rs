//! What server, agent and browser share.
//!
//! * [`domain`]: the rules, pure: no clock, no randomness, no I/O.
//! * [`protocol`]: the types that cross a process boundary.
//! * `command_line` (`native`): what both programs' command lines have in common.
//! * `logging` (`native`): how both programs write their logs.
//! * `remote`: how a client knows that it talks to its orchestrator (`worker`, `cli`).
//! * `ui`: the dashboard, rendered on the server (`ssr`) and brought to life in the browser (`hydrate`).

// Views are deeply nested types.
#![recursion_limit = "512"]

#[cfg(feature = "native")]
pub mod command_line;
pub mod domain;
#[cfg(feature = "native")]
pub mod logging;
pub mod protocol;

#[cfg(feature = "remote")]
pub mod remote;

#[cfg(any(feature = "ssr", feature = "hydrate"))]
pub mod ui;

#[cfg(feature = "hydrate")]
pub mod hydrate;
