//! The server's, of `src/server/http/edge`.

#[path = "../../src/server/http/edge/client_addr.rs"]
pub mod client_addr;
#[path = "../../src/server/http/edge/headers.rs"]
pub mod headers;
