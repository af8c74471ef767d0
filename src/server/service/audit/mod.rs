//! The audit trail beyond writing to it (see [`unit`](super::unit)): reading, verifying, signing and shortening it, and
//! what goes on record of those who are refused.

pub mod checkpoint;
pub mod evidence;
pub mod refused;
pub mod retention;
pub mod trail;
pub mod verify;
