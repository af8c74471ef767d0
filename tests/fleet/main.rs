//! End-to-end tests: real programs, sockets and signals, without access to internals.
//!
//! The programs are in the directory that `SIMPLETUNER_DIST` names (`scripts/test fleet` builds them first). Every test
//! has its own server, agents and temporary directory, waits for states and never for time, and leaves no process
//! behind. A failing test prints the logs of its server and agents.

mod agent_exits;
mod attacker;
mod broken_hosts;
mod canary;
mod cancel;
mod crashes;
mod drain;
mod examples;
mod exclusive;
mod failed_starts;
mod failures;
mod finishing;
mod gpus;
mod harness;
mod job_lifecycle;
mod local;
mod log_pipe;
mod many_clients;
mod monitoring;
mod network;
mod offline_agents;
mod older_agents;
mod operator;
mod poolers;
mod preemption;
mod proxies;
mod queue;
mod restart;
mod resume_elsewhere;
mod rotation;
mod secrets;
mod several;
mod spool;
mod systemd;
mod terminal;
mod tls;
mod troubleshooting;
mod upgrade;
