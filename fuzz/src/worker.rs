//! Modules of the agent, under the paths by which they import each other.

pub mod args;
#[path = "../../src/worker/artifacts/mod.rs"]
pub mod artifacts;
#[path = "../../src/worker/bundle/mod.rs"]
pub mod bundle;
#[path = "../../src/worker/clock.rs"]
pub mod clock;
pub mod config;
#[path = "../../src/worker/doctor/certificate.rs"]
pub mod doctor_certificate;
#[path = "../../src/worker/session/event_size.rs"]
pub mod event_size;
#[path = "../../src/worker/files/mod.rs"]
pub mod files;
#[path = "../../src/worker/job_config.rs"]
pub mod job_config;
#[path = "../../src/worker/config/labels.rs"]
pub mod labels;
#[path = "../../src/worker/process.rs"]
pub mod process;
#[path = "../../src/worker/progress.rs"]
pub mod progress;
#[path = "../../src/worker/secret/mod.rs"]
pub mod secret;
pub mod supervisor;
