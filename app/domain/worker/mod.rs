//! A worker's life: made by an admin, contacted by its agent, drained by a person, lost by silence.
//!
//! Connection and drain are kept apart: nothing that an agent does touches the wish to drain (invariant I7).

use super::capability::Capability;
use super::ids::WorkerId;
use super::labels::Labels;
use super::time::Timestamp;

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
}

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

/// Why a worker's transition is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It cannot be deleted while it is connected.
    Connected,
    /// It is not known to be connected, so it must register first.
    NotRegistered,
    /// It was for one job, and that has ended.
    Spent,
}

impl Worker {
    /// The word to show, given how many jobs it holds.
    pub fn status(&self, jobs: usize) -> Status {
        match (&self.link, &self.drain, jobs) {
            (Link::NeverSeen | Link::Offline { .. }, _, _) => Status::Offline,
            (_, Some(_), _) => Status::Draining,
            _ if self.spent.is_some() => Status::Draining,
            (_, None, 1..) => Status::Busy,
            (Link::Connecting { .. }, None, 0) => Status::Connecting,
            (Link::Online { .. }, None, 0) => Status::Idle,
        }
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

    /// The labels that jobs are matched against: the admin's, then the reported ones, then built-in facts.
    pub fn effective_labels(&self) -> Labels {
        let mut facts = std::collections::BTreeMap::from([("name".to_owned(), self.name.clone())]);
        if let Some(kind) = self.kind {
            facts.insert("worker_type".to_owned(), kind.as_str().to_owned());
        }
        match self.capability() {
            None => self.labels.or(&Labels(facts)),
            Some(capability) => self.labels.or(&capability.labels).or(&capability.facts()).or(&Labels(facts)),
        }
    }

    /// Whether its agent may register: an ephemeral worker's job is its last.
    pub fn may_register(&self) -> Result<(), Refused> {
        if self.spent.is_some() { Err(Refused::Spent) } else { Ok(()) }
    }

    /// A job of its ended for good.
    #[must_use]
    pub fn job_ended(self, now: Timestamp) -> Self {
        match self.kind {
            Some(Kind::Ephemeral) => Self { spent: self.spent.or(Some(now)), ..self },
            Some(Kind::Persistent) | None => self,
        }
    }

    /// Its agent registered. The admin's name, type and labels stay; so does a drain.
    #[must_use]
    pub fn registered(self, now: Timestamp, capability: Capability, kind: Kind) -> Self {
        let kind = Some(self.kind.unwrap_or(kind));
        Self { kind, link: Link::Connecting { since: now, capability }, ..self }
    }

    /// Its agent listens: a stream opened, or it asked what there is to do.
    pub fn listening(self, now: Timestamp) -> Result<Self, Refused> {
        match self.link {
            Link::NeverSeen | Link::Offline { .. } => Err(Refused::NotRegistered),
            Link::Online { .. } => Ok(self),
            Link::Connecting { capability, .. } => Ok(Self { link: Link::Online { since: now, capability }, ..self }),
        }
    }

    /// Its stream ended; it is expected back.
    #[must_use]
    pub fn stopped_listening(self, now: Timestamp) -> Self {
        match self.link {
            Link::Online { capability, .. } => Self { link: Link::Connecting { since: now, capability }, ..self },
            _ => self,
        }
    }

    /// It went.
    #[must_use]
    pub fn gone(self, now: Timestamp, cause: OfflineCause) -> Self {
        match self.link {
            Link::Connecting { capability, .. } | Link::Online { capability, .. } => {
                Self { link: Link::Offline { since: now, capability, cause }, ..self }
            }
            Link::NeverSeen | Link::Offline { .. } => self,
        }
    }

    /// A person wants it to drain; a second wish changes the reason only.
    #[must_use]
    pub fn drained(self, now: Timestamp, reason: Option<String>) -> Self {
        let since = self.drain.as_ref().map_or(now, |drain| drain.since);
        Self { drain: Some(Drain { since, reason }), ..self }
    }

    /// A person takes the wish back.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { drain: None, ..self }
    }

    /// Whether it may be deleted: only when no agent is connected.
    pub fn may_be_deleted(&self) -> Result<(), Refused> {
        match self.link {
            Link::NeverSeen | Link::Offline { .. } => Ok(()),
            Link::Connecting { .. } | Link::Online { .. } => Err(Refused::Connected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    fn made() -> Worker {
        Worker {
            id: WorkerId::new(NOW, [0; 10]),
            name: "gpu-1".to_owned(),
            kind: None,
            labels: Labels::default(),
            created_at: NOW,
            link: Link::NeverSeen,
            drain: None,
            spent: None,
            local: false,
        }
    }

    fn online() -> Worker {
        made().registered(NOW, Capability::default(), Kind::Persistent).listening(NOW).expect("registered")
    }

    #[test]
    fn status_table() {
        let connecting = online().stopped_listening(NOW);
        let offline = online().gone(NOW, OfflineCause::Silent);
        let rows = [
            (made(), 0, Status::Offline),
            (connecting.clone(), 0, Status::Connecting),
            (connecting.clone(), 1, Status::Busy),
            (connecting.drained(NOW, None), 0, Status::Draining),
            (online(), 0, Status::Idle),
            (online(), 2, Status::Busy),
            (online().drained(NOW, None), 1, Status::Draining),
            (offline.clone(), 1, Status::Offline),
            (offline.drained(NOW, None), 0, Status::Offline),
        ];
        for (worker, jobs, status) in rows {
            assert_eq!(worker.status(jobs), status, "{worker:?} with {jobs} jobs");
        }
    }

    #[test]
    fn nothing_an_agent_does_undoes_a_drain() {
        let drained = online().drained(NOW, Some("driver update".to_owned()));
        let after = drained
            .clone()
            .stopped_listening(LATER)
            .gone(LATER, OfflineCause::Disconnected)
            .registered(LATER, Capability::default(), Kind::Ephemeral)
            .listening(LATER)
            .expect("registered");
        assert_eq!(after.drain, drained.drain);
        assert_eq!(after.drained(LATER, None).drain, Some(Drain { since: NOW, reason: None }));
        assert_eq!(drained.resumed().drain, None);
    }

    #[test]
    fn the_first_registration_fills_an_open_type_and_no_later_one_changes_it() {
        let first = made().registered(NOW, Capability::default(), Kind::Ephemeral);
        assert_eq!(first.kind, Some(Kind::Ephemeral));
        assert_eq!(first.registered(LATER, Capability::default(), Kind::Persistent).kind, Some(Kind::Ephemeral));
    }

    #[test]
    fn only_the_registered_listen_and_only_the_absent_are_deleted() {
        assert_eq!(made().listening(NOW), Err(Refused::NotRegistered));
        assert_eq!(online().gone(NOW, OfflineCause::Silent).listening(NOW), Err(Refused::NotRegistered));
        assert_eq!(online().listening(LATER).map(|w| w.link_since()), Ok(NOW));
        assert_eq!(made().may_be_deleted(), Ok(()));
        assert_eq!(online().may_be_deleted(), Err(Refused::Connected));
        assert_eq!(online().stopped_listening(NOW).may_be_deleted(), Err(Refused::Connected));
        assert_eq!(online().gone(NOW, OfflineCause::Disconnected).may_be_deleted(), Ok(()));
    }

    #[test]
    fn an_ephemeral_workers_first_job_is_its_last() {
        let ephemeral = Worker { kind: Some(Kind::Ephemeral), ..online() };
        assert_eq!(ephemeral.may_register(), Ok(()));
        let spent = ephemeral.job_ended(LATER);
        assert_eq!(
            (spent.spent, spent.status(0), spent.may_register()),
            (Some(LATER), Status::Draining, Err(Refused::Spent))
        );
        assert_eq!(spent.clone().job_ended(Timestamp(9_000)), spent);
        assert_eq!(online().job_ended(LATER), online());
        assert_eq!(made().job_ended(LATER), made());
    }

    #[test]
    fn since_follows_the_link() {
        assert_eq!(made().link_since(), NOW);
        assert_eq!(online().stopped_listening(LATER).link_since(), LATER);
        let gone = online().gone(LATER, OfflineCause::Silent);
        assert_eq!(gone.link_since(), LATER);
        assert_eq!(gone.clone().gone(Timestamp(9_000), OfflineCause::Disconnected), gone);
        assert_eq!(made().stopped_listening(LATER), made());
    }

    #[test]
    fn labels_of_the_admin_come_before_reported_ones_before_facts() {
        let label = |key: &str, value: &str| Labels(std::iter::once((key.to_owned(), value.to_owned())).collect());
        let capability = Capability {
            accelerator: "cuda".to_owned(),
            hostname: Some("reported".to_owned()),
            labels: label("hostname", "label"),
            gpus: vec![super::super::capability::Gpu { uuid: "u".to_owned(), name: "A100".to_owned(), vram_gb: None }],
            ..Capability::default()
        };
        let mut worker = made().registered(NOW, capability, Kind::Persistent);
        let value = |worker: &Worker, key: &str| worker.effective_labels().0.get(key).cloned();
        assert_eq!(value(&worker, "hostname").as_deref(), Some("label"));
        assert_eq!(value(&worker, "accelerator_type").as_deref(), Some("cuda"));
        assert_eq!(value(&worker, "gpu_name").as_deref(), Some("A100"));
        assert_eq!(value(&worker, "worker_type").as_deref(), Some("persistent"));
        assert_eq!(value(&worker, "name").as_deref(), Some("gpu-1"));
        worker.labels = label("hostname", "admin");
        assert_eq!(value(&worker, "hostname").as_deref(), Some("admin"));
        assert_eq!(value(&made(), "name").as_deref(), Some("gpu-1"));
    }
}
