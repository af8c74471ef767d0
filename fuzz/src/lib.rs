//! Fuzzing of every parser of input from outside.
//!
//! The server's and the agent's modules are taken as they are, by path, because programs cannot be linked to; whatever is
//! tried is what runs. [`checks`] says what must hold, whatever the bytes; a target in `targets/` is one line around one
//! of them.

#![expect(dead_code, unused_imports, reason = "modules are taken whole, and not all of each is tried")]

pub mod checks;

pub use app::{domain, protocol};

// The agent's, where its modules look for each other.
mod args;
#[path = "../../src/worker/artifacts/mod.rs"]
mod artifacts;
#[path = "../../src/worker/bundle/mod.rs"]
mod bundle;
#[path = "../../src/worker/clock.rs"]
mod clock;
mod config;
#[path = "../../src/worker/doctor/certificate.rs"]
mod doctor_certificate;
#[path = "../../src/worker/session/event_size.rs"]
mod event_size;
#[path = "../../src/worker/files/mod.rs"]
mod files;
#[path = "../../src/worker/job_config.rs"]
mod job_config;
#[path = "../../src/worker/config/labels.rs"]
mod labels;
#[path = "../../src/worker/process.rs"]
mod process;
#[path = "../../src/worker/progress.rs"]
mod progress;
#[path = "../../src/worker/secret/mod.rs"]
mod secret;
mod supervisor;

mod http;
mod http_edge;
mod http_guards;
#[path = "../../src/server/text.rs"]
mod text;
mod tls;

// The dashboard's.
#[path = "../../app/ui/prefs.rs"]
mod prefs;
#[path = "../../app/ui/safe_url.rs"]
mod safe_url;
#[path = "../../app/ui/logs/tail.rs"]
mod tail;
#[expect(unused_macros, reason = "no included file declares words that travel as JSON")]
#[path = "../../app/words.rs"]
mod words;
