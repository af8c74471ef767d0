//! The agent as a real process, against a small orchestrator on the loopback address.

mod adoption;
mod deploy;
mod doctor;
mod ends;
mod fake;
mod gpus;
mod host;
mod idle;
mod init;
mod jobs;
mod manager;
mod nvml;
mod proxy;
mod rented;
mod secrets;
mod spot;
mod terminal;
mod tls;
mod trace;
mod troubleshooting;
