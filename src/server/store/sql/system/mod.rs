//! The tables of servers and migrations.

pub(super) mod schema;
pub(super) mod servers;
