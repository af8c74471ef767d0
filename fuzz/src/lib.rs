//! Fuzzing of every parser of input from outside.
//!
//! Modules of the server and the agent are included by path, because programs cannot be linked, so the tested code is
//! the code that runs. [`checks`] has what must hold for all input; each target in `targets/` calls one of the checks.

#![expect(dead_code, unused_imports, reason = "complete modules are included, and only some of their items are tested")]

pub mod checks;

pub use app::{domain, protocol};

mod worker;

// Modules of the server.
mod http;
mod http_edge;
mod http_guards;
#[path = "../../src/server/text.rs"]
mod text;
mod tls;

// Modules of the dashboard.
#[path = "../../app/ui/prefs.rs"]
mod prefs;
#[path = "../../app/ui/safe_url.rs"]
mod safe_url;
#[path = "../../app/ui/logs/tail.rs"]
mod tail;
#[expect(unused_macros, reason = "no included file declares words that travel as JSON")]
#[path = "../../app/words.rs"]
mod words;
