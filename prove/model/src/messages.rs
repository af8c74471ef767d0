//! The messages between servers and agents, as in `app/protocol/agents`, as far as decisions need them.

use crate::rows::Key;
use crate::ticks::Ticks;
use crate::workers::Session;

/// An offer, as far as the agent's decisions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offer {
    pub key: Key,
    pub gpus: u8,
    pub exclusive: bool,
}

/// Why an attempt must stop: the variants of the protocol that differ for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StopReason {
    Drained,
    Cancelled,
    Superseded,
}

/// The desired state of a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Desired {
    pub run: Vec<Key>,
    pub stop: Vec<(Key, StopReason)>,
    pub offers: Vec<Offer>,
    pub drain: bool,
}

/// A report on an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Report {
    Starting,
    Running,
    Completed,
    Failed,
    Cancelled,
    Requeue,
}

impl Report {
    /// Returns whether it says that no process of the attempt is alive.
    pub const fn has_stopped(self) -> bool {
        !matches!(self, Self::Starting | Self::Running)
    }
}

/// A request of an agent. Reports and progress are authenticated by the attempt's token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    Register {
        token: u8,
        claims: Vec<Key>,
    },
    Heartbeat {
        session: Session,
        claims: Vec<Key>,
    },
    Report {
        key: Key,
        report: Report,
    },
    Progress {
        key: Key,
    },
    /// A report on an attempt that is not on the host.
    ReportMissing {
        key: Key,
        report: Report,
    },
}

impl Request {
    /// Returns whether an agent sends the other one only when this one is answered.
    pub fn has_kind_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Register { .. }, Self::Register { .. }) | (Self::Heartbeat { .. }, Self::Heartbeat { .. }) => true,
            (Self::Report { key, .. }, Self::Report { key: other, .. })
            | (Self::Progress { key }, Self::Progress { key: other }) => key == other,
            _ => false,
        }
    }
}

/// Why a request is rejected, as the agent distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rejection {
    /// 401: the token is invalid.
    Unauthorized,
    /// 409: the agent must register, or the attempt is stale.
    Conflict,
}

/// The response to a request; without a desired state for a report.
pub type Response = Result<Option<Desired>, Rejection>;

/// Where a request is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transit {
    /// On the way to a server, and its agent waits.
    Sent,
    /// On the way to a server, and no agent waits for the response.
    Abandoned,
    /// Answered; the response is on its way.
    Answered(Response),
}

/// A request on its way. Only faults, and reports on missing attempts, let one be on its way for a while: otherwise it is
/// answered in one step, and an agent without contact takes no such steps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flight {
    pub host: u8,
    /// When it was sent.
    pub sent: Ticks,
    pub request: Request,
    pub transit: Transit,
}
