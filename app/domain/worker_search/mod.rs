//! The list of workers: filters, order, and facets.

pub mod facets;
mod matcher;
pub mod order;
pub mod query;

pub use matcher::SearchableWorker;
