//! Modules of the agent from `src/worker/supervisor`.

#[path = "../../../src/worker/supervisor/event_log_line.rs"]
mod event_log_line;
#[path = "../../../src/worker/supervisor/events.rs"]
pub mod events;
#[path = "../../../src/worker/supervisor/media.rs"]
mod media;
#[path = "../../../src/worker/supervisor/sample_name.rs"]
mod sample_name;
