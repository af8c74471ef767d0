//! Configurations.

mod owners;
mod pages;
mod routes;
