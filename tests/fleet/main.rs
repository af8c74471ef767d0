//! The product as its users meet it: the real programs, real sockets, real signals. Nothing here knows the insides.
//!
//! The programs are those in the directory that `SIMPLETUNER_DIST` names (`scripts/test fleet` builds them first).
//! Every test has a server, agents and a temporary directory of its own, waits for states and never for time, and
//! leaves no process behind. When one fails, it prints the logs of its server and agents.

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
mod network;
mod older;
mod operator;
mod proxies;
mod queue;
mod restart;
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
