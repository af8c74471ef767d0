//! The server itself.

mod corrupt_rows;
mod disk;
mod multi_server;
mod ops;
mod overview;
mod routes;
mod shutdown;
pub mod tls;
