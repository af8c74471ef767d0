//! The server's, of `src/server/http/access`.

#[path = "../../src/server/http/access/session_cookie.rs"]
pub mod session_cookie;
