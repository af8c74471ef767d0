//! The HTTP edge, in process: real routes, a real database, a clock that is moved by hand. One file for each part of
//! the address space.

mod access;
mod accounts;
mod agents;
mod audit;
mod configs;
mod disk;
mod dispatch;
mod events;
mod explain;
mod files;
pub mod harness;
mod health;
mod input;
mod ops;
mod pages;
mod problems;
mod proxies;
mod queue;
mod retention;
mod several;
mod stop;
mod tls;
mod trace;
mod workers;
