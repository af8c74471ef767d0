//! The list of workers, as people ask for it: which of them, in which order, and how many there are of each kind.

pub mod facets;
mod fits;
pub mod order;
pub mod query;

pub use fits::Entry;
