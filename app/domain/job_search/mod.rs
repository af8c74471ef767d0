//! The list of jobs: its query language, and an index of all jobs in memory that answers queries.

pub mod columns;
pub mod completion;
mod conditions;
pub mod groups;
pub mod index;
mod matcher;
pub mod order;
pub mod query;

#[cfg(test)]
mod completion_tests;
#[cfg(test)]
mod index_tests;
#[cfg(test)]
mod query_tests;
