//! The life cycle of a worker: created by an admin, connected by its agent, drained by a user, offline after silence.
//!
//! Connection and drain are independent: an agent cannot change a drain (invariant I7).

pub mod credential;
mod deletion;
mod edit;
mod offline;
mod status;
pub mod status_timeline;
pub mod takeovers;
#[cfg(test)]
pub(crate) mod tests;

pub use super::causes::OfflineCause;
pub use edit::WorkerEdit;
pub use status::{ConnectionStatus, WorkerState};

use super::capability::Capability;
use super::gpu::{Gpu, GpuAvailability, GpuReport, apply_reports};
use super::ids::{JobId, WorkerId};
use super::labels::Labels;
use super::network::Network;
use super::time::{Millis, Timestamp};

/// Time for which an older agent may still be busy after it has reported the end of a job.
const FINISHING_GRACE: Millis = Millis::from_secs(2);

/// Whether a worker exits when its job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerKind {
    /// Exits after one job.
    Ephemeral,
    /// Stays online between jobs.
    Persistent,
}

impl WorkerKind {
    /// Returns its name in the database, in labels, the API and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Persistent => "persistent",
        }
    }
}

/// The connection of the agent to the orchestrator.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionState {
    /// Created; its agent has never connected.
    NeverConnected,
    /// Registered, without an open stream.
    Connecting {
        /// Since when.
        since: Timestamp,
        /// The reported capability.
        capability: Capability,
        /// Whether a stream was open and has ended.
        connection_lost: bool,
    },
    /// Connected by a stream, so it receives offers.
    Online {
        /// Since when.
        since: Timestamp,
        /// The reported capability.
        capability: Capability,
        /// The stream's ID: server run, number, and the host that opened it. A newer stream replaces it.
        stream: String,
    },
    /// Disconnected, or silent for too long.
    Offline {
        /// Since when.
        since: Timestamp,
        /// The last reported capability.
        capability: Capability,
        /// Why it is offline.
        cause: OfflineCause,
        /// The jobs that it ran when it fell silent.
        lost_jobs: Vec<JobId>,
    },
}

/// A drain: the worker finishes its jobs and accepts no new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// Since when.
    pub since: Timestamp,
    /// The reason, as given by the user.
    pub reason: Option<String>,
    /// When remaining jobs are stopped and requeued; none lets them finish.
    pub deadline: Option<Timestamp>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// The worker's ID.
    pub id: WorkerId,
    /// The unique name, set by an admin.
    pub name: String,
    /// Set by an admin, or taken from the first registration.
    pub kind: Option<WorkerKind>,
    /// The labels set by an admin.
    pub labels: Labels,
    /// When it was created.
    pub created_at: Timestamp,
    /// The connection of its agent.
    pub connection: ConnectionState,
    /// The drain, if it is draining.
    pub drain: Option<Drain>,
    /// When the only job of an ephemeral worker ended: it accepts no other job, and its token is invalid.
    pub retired_at: Option<Timestamp>,
    /// Whether it is the orchestrator's own agent (`target: local`).
    pub local: bool,
    /// Whether labels that its agent reports are ignored: the owner of a rented host must not choose its jobs.
    pub ignores_reported_labels: bool,
    /// Whether an agent of the older protocol may register. Such an agent uses the worker's token for all requests.
    pub allows_older_agents: bool,
    /// The networks from which its agent may connect; empty for any.
    pub networks: Vec<Network>,
    /// The last time that two agents used its token, until it is resolved.
    pub token_conflict: Option<TokenConflict>,
    /// The job that its older agent claims to run without a lease.
    pub unassigned_run: Option<JobId>,
    /// When its older agent reported the end of a job. It may still be busy for a moment and mishandle an offer.
    pub finishing_since: Option<Timestamp>,
    /// How long its agent may be silent, as last sent to it: a server with another setting may have started since.
    pub lease_duration: Option<Millis>,
}

/// Two agents used one token: it may be stolen, or a disk image was started twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenConflict {
    /// When the rejected agent connected.
    pub at: Timestamp,
    /// Its host, by the reported name or by address; empty if neither is known.
    pub host: String,
}

/// Why a transition of a worker is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerTransitionError {
    /// It cannot be deleted while it is connected.
    Connected,
    /// It cannot be deleted yet: it lost its connection while it ran a job, and may reconnect until this time.
    ConnectionLost {
        /// When it will be marked offline.
        offline_at: Timestamp,
    },
    /// It is not connected and must register first.
    NotRegistered,
    /// Its only job has ended.
    Retired,
    /// Another agent uses the token and is connected.
    TokenInUse,
    /// It uses the older protocol, which this worker does not allow.
    OlderAgentRejected,
}

impl Worker {
    /// Creates a worker that has never connected, without labels and type.
    pub fn new(id: WorkerId, name: String, now: Timestamp) -> Self {
        Self {
            id,
            name,
            kind: None,
            labels: Labels::default(),
            created_at: now,
            connection: ConnectionState::NeverConnected,
            drain: None,
            retired_at: None,
            local: false,
            ignores_reported_labels: false,
            allows_older_agents: true,
            networks: Vec::new(),
            token_conflict: None,
            unassigned_run: None,
            finishing_since: None,
            lease_duration: None,
        }
    }

    /// Returns the state to show, given its number of jobs.
    pub fn state(&self, jobs: usize) -> WorkerState {
        let connection = ConnectionStatus::from_state(&self.connection);
        let has_unassigned_run = connection == ConnectionStatus::Online && self.unassigned_run.is_some();
        connection.worker_state(self.drain.is_some() || self.retired_at.is_some(), jobs > 0 || has_unassigned_run)
    }

    /// Returns since when the connection has this state.
    pub fn connection_since(&self) -> Timestamp {
        match &self.connection {
            ConnectionState::NeverConnected => self.created_at,
            ConnectionState::Connecting { since, .. }
            | ConnectionState::Online { since, .. }
            | ConnectionState::Offline { since, .. } => *since,
        }
    }

    /// Returns the last reported capability.
    pub fn capability(&self) -> Option<&Capability> {
        match &self.connection {
            ConnectionState::NeverConnected => None,
            ConnectionState::Connecting { capability, .. }
            | ConnectionState::Online { capability, .. }
            | ConnectionState::Offline { capability, .. } => Some(capability),
        }
    }

    /// Returns its GPUs with their states; `is_leased` tells whether a job holds the GPU with a UUID.
    pub fn gpu_availability(&self, is_leased: impl Fn(&str) -> bool) -> impl Iterator<Item = (&Gpu, GpuAvailability)> {
        let is_connected = self.check_heartbeat().is_ok();
        let gpus = self.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
        gpus.iter().map(move |gpu| (gpu, gpu.availability(is_connected, is_leased(&gpu.uuid))))
    }

    /// Returns whether its agent is an older one; false if none has connected.
    pub fn has_older_agent(&self) -> bool {
        self.capability().is_some_and(Capability::is_older_agent)
    }

    /// Returns a label for matching: the admin's, then the reported one if it is used, then a built-in fact.
    pub fn label(&self, key: &str, use_reported: bool) -> Option<&str> {
        let capability = self.capability();
        let reported = || capability.filter(|_| use_reported)?.labels.0.get(key).map(String::as_str);
        let fact = || capability.and_then(|capability| capability.builtin_label(key));
        let field = || match key {
            "name" => Some(self.name.as_str()),
            "worker_type" => self.kind.map(WorkerKind::as_str),
            _ => None,
        };
        self.labels.0.get(key).map(String::as_str).or_else(reported).or_else(fact).or_else(field)
    }

    /// Checks whether an agent may register: an ephemeral worker runs one job, and a token serves one host at a time.
    ///
    /// `is_alive` is whether the current agent is in contact. An agent from the same work directory takes over, and so
    /// does one that does not report its work directory. A retired worker that still has jobs (`held_jobs`) may finish them.
    pub fn check_registration(
        &self,
        new_agent: &Capability,
        is_alive: bool,
        held_jobs: usize,
    ) -> Result<(), WorkerTransitionError> {
        if self.retired_at.is_some() && held_jobs == 0 {
            return Err(WorkerTransitionError::Retired);
        }
        if new_agent.is_older_agent() && !self.allows_older_agents {
            return Err(WorkerTransitionError::OlderAgentRejected);
        }
        let connected = match &self.connection {
            ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } => {
                Some(capability)
            }
            ConnectionState::NeverConnected | ConnectionState::Offline { .. } => None,
        };
        if is_alive && connected.is_some_and(|current| current.is_other_installation(new_agent)) {
            Err(WorkerTransitionError::TokenInUse)
        } else {
            Ok(())
        }
    }

    /// Records that a job of the worker ended.
    #[must_use]
    pub fn job_ended(self, now: Timestamp) -> Self {
        match self.kind {
            Some(WorkerKind::Ephemeral) => Self { retired_at: self.retired_at.or(Some(now)), ..self },
            Some(WorkerKind::Persistent) | None => self,
        }
    }

    /// Records that the lease of a job of the worker ended.
    #[must_use]
    pub fn lease_released(self, now: Timestamp) -> Self {
        if self.has_older_agent() { Self { finishing_since: Some(now), ..self } } else { self }
    }

    /// Clears the busy state of an older agent that reported the end of a job, after the grace period.
    #[must_use]
    pub fn clear_finishing(self, now: Timestamp) -> Self {
        let is_over = self.finishing_since.is_some_and(|since| now - since >= FINISHING_GRACE);
        if is_over { Self { finishing_since: None, ..self } } else { self }
    }

    /// Applies a registration of the agent. Name, type, labels and drain set by an admin or user stay.
    #[must_use]
    pub fn registered(self, now: Timestamp, capability: Capability, kind: WorkerKind) -> Self {
        let kind = Some(self.kind.unwrap_or(kind));
        let connection = ConnectionState::Connecting { since: now, capability, connection_lost: false };
        Self { kind, connection, unassigned_run: None, finishing_since: None, ..self }
    }

    /// Applies that the agent is connected: it opened a stream, or polled for jobs. An older stream is replaced.
    pub fn stream_opened(self, now: Timestamp, stream: &str) -> Result<Self, WorkerTransitionError> {
        let stream = stream.to_owned();
        match self.connection {
            ConnectionState::NeverConnected | ConnectionState::Offline { .. } => {
                Err(WorkerTransitionError::NotRegistered)
            }
            ConnectionState::Online { since, capability, .. } => {
                Ok(Self { connection: ConnectionState::Online { since, capability, stream }, ..self })
            }
            ConnectionState::Connecting { capability, .. } => {
                Ok(Self { connection: ConnectionState::Online { since: now, capability, stream }, ..self })
            }
        }
    }

    /// Applies the end of a stream. If it was the newest, the agent is expected to reconnect.
    #[must_use]
    pub fn stream_closed(self, now: Timestamp, stream: &str) -> Self {
        match self.connection {
            ConnectionState::Online { capability, stream: newest, .. } if newest == stream => Self {
                connection: ConnectionState::Connecting { since: now, capability, connection_lost: true },
                ..self
            },
            connection => Self { connection, ..self },
        }
    }

    /// Checks a heartbeat: an agent that is not connected must register first.
    pub fn check_heartbeat(&self) -> Result<(), WorkerTransitionError> {
        match self.connection {
            ConnectionState::Connecting { .. } | ConnectionState::Online { .. } => Ok(()),
            ConnectionState::NeverConnected | ConnectionState::Offline { .. } => {
                Err(WorkerTransitionError::NotRegistered)
            }
        }
    }

    /// Applies a report on GPUs that jobs cannot use, or can use again. Running jobs keep their GPUs.
    #[must_use]
    pub fn gpus_reported(mut self, reports: &[GpuReport]) -> Self {
        if let ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } =
            &mut self.connection
        {
            capability.gpus = apply_reports(&capability.gpus, reports);
        }
        self
    }

    /// Applies a report that the host cannot run new jobs, or can again. Running jobs continue.
    #[must_use]
    pub fn host_health_reported(mut self, unhealthy_reason: Option<String>) -> Self {
        if let ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } =
            &mut self.connection
        {
            capability.unhealthy_reason = unhealthy_reason;
        }
        self
    }

    /// Returns the ID of the open stream.
    pub fn stream_id(&self) -> Option<&str> {
        match &self.connection {
            ConnectionState::Online { stream, .. } => Some(stream),
            ConnectionState::NeverConnected | ConnectionState::Connecting { .. } | ConnectionState::Offline { .. } => {
                None
            }
        }
    }

    /// Marks the worker as offline.
    #[must_use]
    pub fn went_offline(self, now: Timestamp, cause: OfflineCause) -> Self {
        match self.connection {
            ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } => Self {
                connection: ConnectionState::Offline { since: now, capability, cause, lost_jobs: Vec::new() },
                unassigned_run: None,
                finishing_since: None,
                ..self
            },
            ConnectionState::NeverConnected | ConnectionState::Offline { .. } => self,
        }
    }

    /// Starts a drain; if it is draining already, changes only reason and deadline.
    #[must_use]
    pub fn drained(self, now: Timestamp, reason: Option<String>, deadline: Option<Timestamp>) -> Self {
        let since = self.drain.as_ref().map_or(now, |drain| drain.since);
        Self { drain: Some(Drain { since, reason, deadline }), ..self }
    }

    /// Returns whether its jobs must be stopped because the deadline of the drain has passed.
    pub fn should_evict(&self, now: Timestamp) -> bool {
        self.drain.as_ref().and_then(|drain| drain.deadline).is_some_and(|deadline| deadline <= now)
    }

    /// Returns why the older agent of an ephemeral worker must exit once nothing runs. Older agents know neither drains
    /// nor that they run one job only.
    pub fn shutdown_reason(&self) -> Option<&str> {
        if !self.has_older_agent() || self.kind != Some(WorkerKind::Ephemeral) {
            return None;
        }
        let drained = self.drain.as_ref().map(|drain| drain.reason.as_deref().unwrap_or("The worker is drained."));
        drained.or_else(|| self.retired_at.map(|_| "This ephemeral worker has run its job."))
    }

    /// Ends the drain.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { drain: None, ..self }
    }

    /// Records that a second agent used the token.
    #[must_use]
    pub fn token_contended(self, now: Timestamp, host: &str) -> Self {
        Self { token_conflict: Some(TokenConflict { at: now, host: host.to_owned() }), ..self }
    }

    /// Records a rotation of the token, which resolves a token conflict.
    #[must_use]
    pub fn token_rotated(self) -> Self {
        Self { token_conflict: None, ..self }
    }
}
