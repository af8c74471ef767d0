//! The edge, which every request passes: limits of size and rate, the client's address, headers, and the body.

pub(super) mod byte_range;
pub mod client_addr;
pub(super) mod conditional;
pub(super) mod csv;
pub(super) mod extractors;
pub(super) mod file_part;
pub mod json;
pub(super) mod language;
pub(super) mod limits;
pub(super) mod loopback_host;
pub(super) mod min_transfer_rate;
pub(super) mod prefs;
pub mod request;
pub(super) mod request_headers;
pub mod server_address;
