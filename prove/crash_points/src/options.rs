//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::sweep::Selection;

/// What is crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The server on SQLite: its directory after a crash at each operation.
    ServerSqlite,
    /// The server on PostgreSQL, killed at each write.
    ServerPostgres,
    /// The three parts below.
    Agent,
    /// The agent's host, lost at each operation.
    AgentLost,
    /// Each file of an agent, damaged.
    AgentDamaged,
    /// The agent, killed at each operation.
    AgentKilled,
}

/// Crashes server and agent at each of their file operations, and checks what they recover.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Without it: all parts.
    pub part: Option<Part>,
    /// The folder of the programs.
    #[arg(long, env = "SIMPLETUNER_DIST", default_value = "dist")]
    pub dist: PathBuf,
    /// Crash at each K-th operation; by default as often as four minutes allow.
    #[arg(long, value_name = "K", conflicts_with = "all")]
    pub every: Option<usize>,
    /// The first operation.
    #[arg(long, default_value_t = 0)]
    pub offset: usize,
    /// Crash at all operations.
    #[arg(long)]
    pub all: bool,
    /// Treat flushes of files whose name ends with this as if they did nothing: a check must then fail.
    #[arg(long, value_name = "ENDING")]
    pub ignore_flush: Option<String>,
    /// Also lose names whose directory was not flushed, as POSIX allows and ext4 does not.
    #[arg(long)]
    pub posix: bool,
    /// Only print the recorded operations.
    #[arg(long)]
    pub list: bool,
    /// Stop a part after this many failures.
    #[arg(long, default_value_t = 20)]
    pub max_failures: usize,
}

impl Options {
    pub fn parts(&self) -> Vec<Part> {
        let agent = [Part::AgentLost, Part::AgentDamaged, Part::AgentKilled];
        match self.part {
            None => [Part::ServerSqlite, Part::ServerPostgres].into_iter().chain(agent).collect(),
            Some(Part::Agent) => agent.to_vec(),
            Some(part) => vec![part],
        }
    }

    /// Which of this many points are tried, if about `bound` of them are by default.
    pub fn selection(&self, points: usize, bound: usize) -> Selection {
        let every = if self.all { 1 } else { self.every.unwrap_or_else(|| points.div_ceil(bound)) };
        Selection { every: every.max(1), offset: self.offset }
    }
}
