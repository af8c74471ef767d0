//! The pipes between a supervisor and the agent that has started it: one JSON value per line. If that agent dies, the next
//! one has only the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;

/// From the agent to its supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorOrder {
    /// Prepare this attempt.
    Prepare(Assignment),
    /// The orchestrator has accepted it: start its trainer.
    Start,
}

/// An attempt for a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The attempt's directory.
    pub dir: PathBuf,
    /// The trainer's environment. It contains secrets, so it is in no file.
    pub environment: BTreeMap<String, String>,
}

/// From a supervisor to its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    /// The running trainer is recorded.
    Recorded,
    /// The attempt's exit is recorded, and the supervisor is free for another one.
    Ended,
}

/// The supervisor's ends.
pub struct AgentPipe {
    orders: Lines<BufReader<Receiver>>,
    events: File,
}

impl AgentPipe {
    /// From standard input and output.
    ///
    /// # Errors
    /// If standard input is no pipe.
    pub fn open() -> io::Result<Self> {
        let orders = Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let events = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { orders: BufReader::new(orders).lines(), events })
    }

    /// The next order; `None` if the agent has exited or has withdrawn the attempt. Cancel-safe.
    pub async fn next_order(&mut self) -> Option<SupervisorOrder> {
        let line = self.orders.next_line().await.ok()??;
        serde_json::from_str(&line).inspect_err(|error| tracing::error!("cannot read the agent's order: {error}")).ok()
    }

    /// Tells the agent, which finds out by itself if it does not get this. Returns false if it has exited.
    pub fn send(&mut self, event: SupervisorEvent) -> bool {
        let line = serde_json::to_vec(&event).map(|line| [line, vec![b'\n']].concat());
        line.map_err(io::Error::other).and_then(|line| self.events.write_all(&line)).is_ok()
    }
}
