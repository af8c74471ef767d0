//! What every request passes: its size and pace, its address, its headers, its body.

pub mod client_addr;
pub(super) mod conditional;
pub(super) mod csv;
pub(super) mod extractors;
pub(super) mod headers;
pub mod json;
pub(super) mod language;
pub(super) mod limits;
pub(super) mod min_transfer_rate;
pub(super) mod prefs;
pub mod request;
pub mod server_address;
