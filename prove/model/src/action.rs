//! What can happen.

use std::fmt;

use crate::messages::{Flight, Request, Transit};
use crate::rows::Key;

/// What becomes of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// The response arrives later.
    Late,
    /// The agent gives up, and may repeat the request.
    Lost,
}

/// A step. Hosts, servers and jobs by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Tick,
    // Agents.
    StartAgent(usize),
    KillAgent(usize),
    StopAgent(usize, usize),
    OpenStream(usize, usize),
    StartTrainer(usize, Key),
    HandleOrphan(usize, Key),
    // Trainers and supervisors.
    TrainerCompletes(usize, Key),
    TrainerFails(usize, Key),
    TrainerStops(usize, Key),
    KillSupervisors(usize),
    Reboot(usize),
    LoseDisk(usize),
    // Messages.
    Exchange(usize, Request, usize, Fate),
    SendLate(usize, Request),
    Deliver(Flight, usize),
    Abandon(Flight),
    Drop(Flight),
    Receive(Flight),
    Push(usize, Fate),
    ReceiveEvent(usize),
    BreakStream(usize),
    NoticeClosed(usize),
    // Servers.
    StartServer(usize),
    KillServer(usize),
    TakeLead(usize),
    LoseLead(usize),
    ReadOldState(usize),
    CheckHealth(usize, usize),
    Sweep(usize),
    CommitSubmit(usize),
    // Users.
    Submit(usize),
    Retry(usize, usize),
    Cancel(usize),
    Drain(usize, bool),
    Resume(usize),
    Rotate(usize, bool),
    Delete(usize),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let describe = |flight: &Flight| {
            let age = if flight.sent < 0 { format!(", sent {} ticks ago", -flight.sent) } else { String::new() };
            let abandoned = if flight.transit == Transit::Abandoned { ", abandoned" } else { "" };
            format!("{:?} of host {}{age}{abandoned}", flight.request, flight.host)
        };
        match self {
            Self::Exchange(host, request, server, fate) => {
                write!(f, "host {host} sends {request:?} to server {server} (response: {fate:?})")
            }
            Self::SendLate(host, request) => write!(f, "host {host} sends {request:?}, which is late"),
            Self::Deliver(flight, server) => write!(f, "server {server} processes {}", describe(flight)),
            Self::Abandon(flight) => write!(f, "the agent abandons {}", describe(flight)),
            Self::Drop(flight) => write!(f, "lost: {}", describe(flight)),
            Self::Receive(flight) => write!(f, "the late response arrives to {}", describe(flight)),
            other => write!(f, "{other:?}"),
        }
    }
}
