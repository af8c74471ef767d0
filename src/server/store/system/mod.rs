//! The servers of one database, and its schema.

pub mod schema;
pub mod servers;
