//! The description of an operation of the API: its documentation, and the signature of its handler.

pub mod doc;
pub mod signature;
