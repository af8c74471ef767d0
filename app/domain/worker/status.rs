//! What is shown of a worker.

use super::Link;

/// What is shown of a worker: the five words of the product document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Registered, not listening.
    Connecting,
    /// Listening, nothing to do.
    Idle,
    /// Listening, with jobs.
    Busy,
    /// To take nothing new.
    Draining,
    /// Gone, or never seen.
    Offline,
}

/// How it is connected, without what it reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contact {
    /// Made, and never heard of.
    NeverSeen,
    /// Registered, not listening.
    Connecting,
    /// Listening.
    Online,
    /// Gone.
    Offline,
}

impl Contact {
    /// That of a link.
    pub const fn of(link: &Link) -> Self {
        match link {
            Link::NeverSeen => Self::NeverSeen,
            Link::Connecting { .. } => Self::Connecting,
            Link::Online { .. } => Self::Online,
            Link::Offline { .. } => Self::Offline,
        }
    }

    /// The word to show of a worker that takes nothing new, or has something to do.
    pub const fn status(self, drains: bool, busy: bool) -> Status {
        match self {
            Self::NeverSeen | Self::Offline => Status::Offline,
            Self::Connecting | Self::Online if drains => Status::Draining,
            Self::Connecting | Self::Online if busy => Status::Busy,
            Self::Connecting => Status::Connecting,
            Self::Online => Status::Idle,
        }
    }
}
