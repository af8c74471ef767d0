//! The agent as a real process, against a small orchestrator on the loopback address.

mod adoption;
mod backlog;
mod bad_input;
mod checkpoints;
mod ends;
mod exclusive;
mod fake;
mod full_disk;
mod gpus;
mod host;
mod jobs;
mod launch;
mod nvml;
mod odd;
mod places;
mod secrets;
mod several;
mod spooling;
mod stopping;
mod tls;
mod trace;
mod uploads;
mod versions;
