//! Modules of the server from `src/server/http/guards`.

#[path = "../../src/server/http/guards/session_cookie.rs"]
pub mod session_cookie;
