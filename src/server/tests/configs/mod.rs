//! Configurations.

mod owners;
mod routes;
