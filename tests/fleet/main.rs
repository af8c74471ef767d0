//! End-to-end tests: real programs, sockets and signals, without access to internals.
//!
//! The programs are in the directory that `SIMPLETUNER_DIST` names (`scripts/test fleet` builds them first). Every test has its
//! own server, agents and temporary directory, waits for states and never for time, and leaves no process behind. A failing
//! test prints the logs of its server and agents.

mod attacker;
mod bad_starts;
mod canary;
mod cancel;
mod crashes;
mod drain;
mod endings;
mod examples;
mod exclusive;
mod failures;
mod finishing;
mod gpus;
mod harness;
mod local;
mod log_pipe;
mod monitoring;
mod network;
mod older;
mod operator;
mod poolers;
mod proxies;
mod queue;
mod restart;
mod rotation;
mod secrets;
mod several;
mod spool;
mod storms;
mod surroundings;
mod systemd;
mod terminal;
mod tls;
mod travel;
mod troubleshooting;
mod whole_job;
mod zombies;
