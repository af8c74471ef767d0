//! A worker's life: made by an admin, contacted by its agent, drained by a person, lost by silence.
//!
//! Connection and drain are kept apart: nothing that an agent does touches the wish to drain (invariant I7).

pub mod course;
pub mod credential;
mod edit;
mod status;
pub mod takeovers;
#[cfg(test)]
pub(crate) mod tests;

pub use edit::Edit;
pub use status::{Contact, Status};

use super::capability::Capability;
use super::gpu::{Word, taken_in};
use super::ids::{JobId, WorkerId};
use super::labels::Labels;
use super::network::Network;
use super::time::{Millis, Timestamp};

/// How long an older agent may be busy with a job whose end it has reported.
const FINISHING: Millis = Millis::seconds(2);

/// Whether a worker goes when its job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ends after one job.
    Ephemeral,
    /// Stays between jobs.
    Persistent,
}

impl Kind {
    /// Its word: in the database, as a label, on the wire and on the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Persistent => "persistent",
        }
    }
}

/// How the orchestrator and the agent stand to each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// Made, and never heard of.
    NeverSeen,
    /// Registered; its stream is not open (yet, or any more).
    Connecting {
        /// Since when.
        since: Timestamp,
        /// What it reported.
        capability: Capability,
    },
    /// Listening: offers reach it.
    Online {
        /// Since when.
        since: Timestamp,
        /// What it reported.
        capability: Capability,
        /// By which stream: the life of the server that holds it, a number, and the host that opened it. A newer one
        /// takes its place.
        stream: String,
    },
    /// It said goodbye, or was silent for too long.
    Offline {
        /// Since when.
        since: Timestamp,
        /// What it reported last.
        capability: Capability,
        /// How it went.
        cause: OfflineCause,
    },
}

/// How a worker went offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfflineCause {
    /// The agent said so.
    Disconnected,
    /// Nothing was heard for longer than the heartbeat timeout.
    Silent,
}

/// The wish that a worker finish what it has and take nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// Since when.
    pub since: Timestamp,
    /// Why, in the words of whoever asked.
    pub reason: Option<String>,
    /// When what still runs is stopped, and goes back to the queue; none lets it finish.
    pub deadline: Option<Timestamp>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// Unique name, given by the admin.
    pub name: String,
    /// Given by the admin, or taken from the first registration.
    pub kind: Option<Kind>,
    /// The admin's labels.
    pub labels: Labels,
    /// When the admin made it.
    pub created_at: Timestamp,
    /// Its connection.
    pub link: Link,
    /// Whether it is to drain.
    pub drain: Option<Drain>,
    /// When the one job of an ephemeral worker ended: it takes no other, and its token opens nothing any more.
    pub spent: Option<Timestamp>,
    /// Whether it is the orchestrator's own child agent (`target: local`).
    pub local: bool,
    /// Whether labels that its agent reports do not count: who rents a host out is not to choose its jobs.
    pub ignores_reported: bool,
    /// Whether an agent of the older protocol may register. One uses the worker's token for everything.
    pub allows_older: bool,
    /// Where its agent may come from; none for anywhere.
    pub networks: Vec<Network>,
    /// The last time that two agents came with its token, until somebody has seen to it.
    pub conflict: Option<Conflict>,
    /// What its older agent runs without holding it, by its own word.
    pub astray: Option<JobId>,
    /// When its older agent reported the end of a job. It may be busy with that job for a moment longer, and ignore an
    /// offer or mistake it for the one before.
    pub finishing: Option<Timestamp>,
    /// How long its agent may be silent, as it was told last: a server with another setting may have come since.
    pub lease: Option<Millis>,
}

/// Two agents came with one token: it may be stolen, or a disk image was started twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// When the one that was refused came.
    pub at: Timestamp,
    /// From which host, in its own words or by its address; empty if neither is known.
    pub host: String,
}

/// Why a worker's transition is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It cannot be deleted while it is connected.
    Connected,
    /// It is not known to be connected, so it must register first.
    NotRegistered,
    /// It was for one job, and that has ended.
    Spent,
    /// An agent from elsewhere uses the token, and is alive.
    TokenInUse,
    /// It speaks the older protocol, which this worker does not allow.
    Older,
}

impl Worker {
    /// A new one that nobody has heard of, without labels, of either type.
    pub fn made(id: WorkerId, name: String, now: Timestamp) -> Self {
        Self {
            id,
            name,
            kind: None,
            labels: Labels::default(),
            created_at: now,
            link: Link::NeverSeen,
            drain: None,
            spent: None,
            local: false,
            ignores_reported: false,
            allows_older: true,
            networks: Vec::new(),
            conflict: None,
            astray: None,
            finishing: None,
            lease: None,
        }
    }

    /// The word to show, given how many jobs it holds.
    pub fn status(&self, jobs: usize) -> Status {
        let contact = Contact::of(&self.link);
        let astray = contact == Contact::Online && self.astray.is_some();
        contact.status(self.drain.is_some() || self.spent.is_some(), jobs > 0 || astray)
    }

    /// Since when its connection is as it is.
    pub fn link_since(&self) -> Timestamp {
        match &self.link {
            Link::NeverSeen => self.created_at,
            Link::Connecting { since, .. } | Link::Online { since, .. } | Link::Offline { since, .. } => *since,
        }
    }

    /// What it reported last.
    pub fn capability(&self) -> Option<&Capability> {
        match &self.link {
            Link::NeverSeen => None,
            Link::Connecting { capability, .. }
            | Link::Online { capability, .. }
            | Link::Offline { capability, .. } => Some(capability),
        }
    }

    /// Whether its agent is an older one; not, if none was ever there.
    pub fn is_older(&self) -> bool {
        self.capability().is_some_and(Capability::is_older)
    }

    /// One of the labels that jobs are matched against: the admin's, then the reported ones if they count, then
    /// built-in facts.
    pub fn label(&self, key: &str, reported: bool) -> Option<&str> {
        let capability = self.capability();
        let reported = || capability.filter(|_| reported)?.labels.0.get(key).map(String::as_str);
        let fact = || capability.and_then(|capability| capability.fact(key));
        let own = || match key {
            "name" => Some(self.name.as_str()),
            "worker_type" => self.kind.map(Kind::as_str),
            _ => None,
        };
        self.labels.0.get(key).map(String::as_str).or_else(reported).or_else(fact).or_else(own)
    }

    /// Whether an agent may register: an ephemeral worker's job is its last, and one token serves one host at a time.
    ///
    /// `alive` says whether the agent that has it is still heard of. One that comes from the same work directory takes
    /// over; so does any that does not say where it comes from. What a spent one still `holds` it sees through.
    pub fn may_register(&self, newcomer: &Capability, alive: bool, holds: usize) -> Result<(), Refused> {
        if self.spent.is_some() && holds == 0 {
            return Err(Refused::Spent);
        }
        if newcomer.is_older() && !self.allows_older {
            return Err(Refused::Older);
        }
        let connected = match &self.link {
            Link::Connecting { capability, .. } | Link::Online { capability, .. } => Some(capability),
            Link::NeverSeen | Link::Offline { .. } => None,
        };
        let elsewhere = |there: &Capability| match (&there.install_id, &newcomer.install_id) {
            (Some(old), Some(new)) => old != new,
            _ => false,
        };
        if alive && connected.is_some_and(elsewhere) { Err(Refused::TokenInUse) } else { Ok(()) }
    }

    /// A job of its ended for good.
    #[must_use]
    pub fn job_ended(self, now: Timestamp) -> Self {
        match self.kind {
            Some(Kind::Ephemeral) => Self { spent: self.spent.or(Some(now)), ..self },
            Some(Kind::Persistent) | None => self,
        }
    }

    /// The lease of a job of its ended.
    #[must_use]
    pub fn released(self, now: Timestamp) -> Self {
        if self.is_older() { Self { finishing: Some(now), ..self } } else { self }
    }

    /// Time passed: an older agent that reported the end of a job is free for the next.
    #[must_use]
    pub fn settled(self, now: Timestamp) -> Self {
        let over = self.finishing.is_some_and(|since| now - since >= FINISHING);
        if over { Self { finishing: None, ..self } } else { self }
    }

    /// Its agent registered. The admin's name, type and labels stay; so does a drain. What it should not run it is told by
    /// the answer.
    #[must_use]
    pub fn registered(self, now: Timestamp, capability: Capability, kind: Kind) -> Self {
        let kind = Some(self.kind.unwrap_or(kind));
        Self { kind, link: Link::Connecting { since: now, capability }, astray: None, finishing: None, ..self }
    }

    /// Its agent listens: a stream opened, or it asked what there is to do. An older stream is superseded.
    pub fn listening(self, now: Timestamp, stream: &str) -> Result<Self, Refused> {
        let stream = stream.to_owned();
        match self.link {
            Link::NeverSeen | Link::Offline { .. } => Err(Refused::NotRegistered),
            Link::Online { since, capability, .. } => {
                Ok(Self { link: Link::Online { since, capability, stream }, ..self })
            }
            Link::Connecting { capability, .. } => {
                Ok(Self { link: Link::Online { since: now, capability, stream }, ..self })
            }
        }
    }

    /// A stream of its ended. If it was the newest, the agent is expected back; the end of an older one is nothing.
    #[must_use]
    pub fn stopped_listening(self, now: Timestamp, stream: &str) -> Self {
        match self.link {
            Link::Online { capability, stream: newest, .. } if newest == stream => {
                Self { link: Link::Connecting { since: now, capability }, ..self }
            }
            link => Self { link, ..self },
        }
    }

    /// Whether its heartbeat means something: who is not known to be connected has to register first.
    pub fn may_beat(&self) -> Result<(), Refused> {
        match self.link {
            Link::Connecting { .. } | Link::Online { .. } => Ok(()),
            Link::NeverSeen | Link::Offline { .. } => Err(Refused::NotRegistered),
        }
    }

    /// Its agent said which GPUs no job may have now, and which one may have again. What its jobs hold they keep.
    #[must_use]
    pub fn gpus_said(mut self, said: &[Word]) -> Self {
        if let Link::Connecting { capability, .. } | Link::Online { capability, .. } = &mut self.link {
            capability.gpus = taken_in(&capability.gpus, said);
        }
        self
    }

    /// Its agent said why its host is fit for no new job now, or that it is fit. What it has it keeps.
    #[must_use]
    pub fn fitness_said(mut self, unfit: Option<String>) -> Self {
        if let Link::Connecting { capability, .. } | Link::Online { capability, .. } = &mut self.link {
            capability.unfit = unfit;
        }
        self
    }

    /// The stream by which it listens.
    pub fn stream(&self) -> Option<&str> {
        match &self.link {
            Link::Online { stream, .. } => Some(stream),
            Link::NeverSeen | Link::Connecting { .. } | Link::Offline { .. } => None,
        }
    }

    /// It went.
    #[must_use]
    pub fn gone(self, now: Timestamp, cause: OfflineCause) -> Self {
        match self.link {
            Link::Connecting { capability, .. } | Link::Online { capability, .. } => {
                Self { link: Link::Offline { since: now, capability, cause }, astray: None, finishing: None, ..self }
            }
            Link::NeverSeen | Link::Offline { .. } => self,
        }
    }

    /// A person wants it to drain; a second wish changes reason and deadline only.
    #[must_use]
    pub fn drained(self, now: Timestamp, reason: Option<String>, deadline: Option<Timestamp>) -> Self {
        let since = self.drain.as_ref().map_or(now, |drain| drain.since);
        Self { drain: Some(Drain { since, reason, deadline }), ..self }
    }

    /// Whether what it runs is to be stopped, because its drain's deadline has passed.
    pub fn evicts(&self, now: Timestamp) -> bool {
        self.drain.as_ref().and_then(|drain| drain.deadline).is_some_and(|deadline| deadline <= now)
    }

    /// Why the older agent of an ephemeral worker is to end once nothing runs. It knows neither drains nor that its job was
    /// its last.
    pub fn dismissed(&self) -> Option<&str> {
        if !self.is_older() || self.kind != Some(Kind::Ephemeral) {
            return None;
        }
        let drained = self.drain.as_ref().map(|drain| drain.reason.as_deref().unwrap_or("The worker is drained."));
        drained.or_else(|| self.spent.map(|_| "This ephemeral worker has run its job."))
    }

    /// A person takes the wish back.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { drain: None, ..self }
    }

    /// A second agent came with its token.
    #[must_use]
    pub fn contended(self, now: Timestamp, host: &str) -> Self {
        Self { conflict: Some(Conflict { at: now, host: host.to_owned() }), ..self }
    }

    /// It has another token: whoever had the one before is out.
    #[must_use]
    pub fn rekeyed(self) -> Self {
        Self { conflict: None, ..self }
    }

    /// Whether it may be deleted: only when no agent is connected.
    pub fn may_be_deleted(&self) -> Result<(), Refused> {
        match self.link {
            Link::NeverSeen | Link::Offline { .. } => Ok(()),
            Link::Connecting { .. } | Link::Online { .. } => Err(Refused::Connected),
        }
    }
}
