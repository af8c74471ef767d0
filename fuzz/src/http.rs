//! The server's, of `src/server/http`.

#[path = "../../src/server/http/client_addr.rs"]
pub mod client_addr;
#[path = "../../src/server/http/headers.rs"]
pub mod headers;
#[path = "../../src/server/http/session_cookie.rs"]
pub mod session_cookie;
