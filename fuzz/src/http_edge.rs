//! Modules of the server from `src/server/http/edge`.

#[path = "../../src/server/http/edge/byte_range.rs"]
pub mod byte_range;
#[path = "../../src/server/http/edge/client_addr.rs"]
pub mod client_addr;
#[path = "../../src/server/http/edge/loopback_host.rs"]
pub mod loopback_host;
#[path = "../../src/server/http/edge/request_headers.rs"]
pub mod request_headers;
