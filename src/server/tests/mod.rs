//! The HTTP edge, in process: real routes, a real database, a clock that is moved by hand. One file for each part of
//! the address space.

mod access;
mod accounts;
mod agents;
mod audit;
mod conditional;
mod configs;
mod described;
mod disk;
mod dispatch;
mod docs;
mod events;
mod explain;
mod files;
mod floods;
pub mod harness;
mod headers;
mod health;
mod input;
mod older;
mod openapi;
mod ops;
mod pages;
mod problems;
mod proxies;
mod queue;
mod rates;
mod retention;
mod revocation;
mod secrets;
mod several;
mod stop;
mod strangers;
mod tls;
mod tokens;
mod trace;
mod workers;
