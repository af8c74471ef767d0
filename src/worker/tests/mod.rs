//! The agent as a real process, against a small orchestrator on the loopback address.

mod adoption;
mod backlog;
mod checkpoints;
mod ends;
mod fake;
mod gpus;
mod host;
mod jobs;
mod launch;
mod nvml;
mod odd;
mod places;
mod secrets;
mod several;
mod tls;
mod trace;
mod uploads;
