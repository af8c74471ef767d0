//! The server's, of `src/server/http`.

#[path = "../../src/server/http/arrival.rs"]
pub mod arrival;
#[path = "../../src/server/http/headers.rs"]
pub mod headers;
#[path = "../../src/server/http/session_cookie.rs"]
pub mod session_cookie;
