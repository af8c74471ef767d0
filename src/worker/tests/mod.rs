//! The agent as a real process, against a small orchestrator on the loopback address.

mod adoption;
mod bad_input;
mod ends;
mod exclusive;
mod fake;
mod full_disk;
mod gpus;
mod host;
mod jobs;
mod nvml;
mod secrets;
mod spooling;
mod stopping;
mod tls;
mod trace;
mod versions;
