//! The list of workers, as people ask for it: in which order, and which of them.

pub mod order;
