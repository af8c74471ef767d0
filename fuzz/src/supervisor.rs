//! The agent's, of `src/worker/supervisor`.

#[path = "../../src/worker/supervisor/events.rs"]
pub mod events;
#[path = "../../src/worker/supervisor/media.rs"]
mod media;
#[path = "../../src/worker/supervisor/told.rs"]
mod told;
