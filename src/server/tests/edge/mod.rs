//! What every request passes, and documents of the API.

mod conditional;
mod docs;
mod events;
mod floods;
mod headers;
mod http2;
mod input;
mod problems;
mod proxies;
