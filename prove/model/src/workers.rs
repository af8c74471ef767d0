//! Stored workers and their credentials in a compact form; see [`crate::rows`].
//!
//! Sessions and streams are compared only for equality, so those that a later one has replaced need no names.

use app::domain::capability::Capability;
use app::domain::causes::OfflineCause;
use app::domain::gpu::Gpu;
use app::domain::worker::credential::{PreviousSecret, WorkerCredential, WorkerSession};
use app::domain::worker::{ConnectionState, Drain, Worker, WorkerKind};

use crate::config::HostShape;
use crate::rows::{gpu_uuid, worker_id};
use crate::ticks::{HORIZON, NOW, TIMEOUT, Ticks, age, approach, duration, ticks, timestamp};

/// The session of a request or an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Session {
    /// From the newest registration that the server has processed.
    Newest,
    /// A later registration has replaced it.
    Replaced,
}

/// The connection of an agent, and the host from which it registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionRow {
    Never,
    Connecting { since: Ticks, host: u8, lost: bool },
    Online { since: Ticks, host: u8, server: u8 },
    Offline { since: Ticks, host: u8 },
}

/// Tokens are numbered in the order of rotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialRow {
    pub token: u8,
    pub previous: Option<(u8, Ticks)>,
    /// The token that created the newest session.
    pub session: Option<u8>,
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerRow {
    pub connection: ConnectionRow,
    pub is_draining: bool,
    /// When remaining jobs are stopped.
    pub drain_deadline: Option<Ticks>,
    pub credential: CredentialRow,
    /// The last contact that is stored.
    pub seen: Option<Ticks>,
}

/// Returns the digest of a token.
pub fn token_digest(token: u8) -> String {
    format!("t{token}")
}

/// Returns the digest of a session.
pub const fn session_digest(session: Session) -> &'static str {
    match session {
        Session::Newest => "newest",
        Session::Replaced => "replaced",
    }
}

/// Returns the ID of a stream from a server to a host.
pub fn stream_id(server: usize, host: usize) -> String {
    format!("s{server}/{host}@h{host}")
}

/// Returns what an agent of a worker reports at its registration from a host.
pub fn capability(n: usize, host: usize, shape: HostShape) -> Capability {
    let gpu = |index: u8| Gpu {
        index: index.into(),
        uuid: gpu_uuid(n, index),
        name: "A80".to_owned(),
        vram_gb: Some(80.0),
        ..Gpu::default()
    };
    Capability {
        gpus: (0..shape.gpus).map(gpu).collect(),
        accelerator: "cuda".to_owned(),
        protocol: Some(1),
        install_id: Some(format!("h{host}")),
        max_jobs: shape.max_jobs,
        ..Capability::default()
    }
}

impl WorkerRow {
    /// A worker whose agent has never connected.
    pub const fn new() -> Self {
        let credential = CredentialRow { token: 0, previous: None, session: None };
        Self { connection: ConnectionRow::Never, is_draining: false, drain_deadline: None, credential, seen: None }
    }

    /// Converts to a worker of the rules.
    pub fn to_worker(self, n: usize, shape: HostShape) -> Worker {
        let capability = |host: u8| capability(n, host.into(), shape);
        let connection = match self.connection {
            ConnectionRow::Never => ConnectionState::NeverConnected,
            ConnectionRow::Connecting { since, host, lost } => ConnectionState::Connecting {
                since: timestamp(since),
                capability: capability(host),
                connection_lost: lost,
            },
            ConnectionRow::Online { since, host, server } => ConnectionState::Online {
                since: timestamp(since),
                capability: capability(host),
                stream: stream_id(server.into(), host.into()),
            },
            ConnectionRow::Offline { since, host } => ConnectionState::Offline {
                since: timestamp(since),
                capability: capability(host),
                cause: OfflineCause::HeartbeatTimeout,
                lost_jobs: Vec::new(),
            },
        };
        let deadline = self.drain_deadline.map(timestamp);
        Worker {
            kind: Some(WorkerKind::Persistent),
            connection,
            drain: self.is_draining.then_some(Drain { since: NOW, reason: None, deadline }),
            lease_duration: (self.connection != ConnectionRow::Never).then_some(duration(TIMEOUT)),
            ..Worker::new(worker_id(n), format!("w{n}"), timestamp(-1))
        }
    }

    /// Stores a worker of the rules.
    pub fn with_worker(self, worker: &Worker) -> Self {
        let install_id = worker.capability().and_then(|capability| capability.install_id.as_deref());
        let host = install_id.map_or(0, |id| id.as_bytes()[1] - b'0');
        let connection = match &worker.connection {
            ConnectionState::NeverConnected => ConnectionRow::Never,
            ConnectionState::Connecting { since, connection_lost, .. } => {
                ConnectionRow::Connecting { since: ticks(*since), host, lost: *connection_lost }
            }
            ConnectionState::Online { since, stream, .. } => {
                let server = stream.as_bytes()[1] - b'0';
                ConnectionRow::Online { since: ticks(*since), host, server }
            }
            ConnectionState::Offline { since, .. } => ConnectionRow::Offline { since: ticks(*since), host },
        };
        let deadline = worker.drain.as_ref().and_then(|drain| drain.deadline);
        Self {
            connection,
            is_draining: worker.drain.is_some(),
            drain_deadline: deadline.map(|at| ticks(at).max(0)),
            ..self
        }
    }

    /// Lets a tick pass.
    pub fn tick(&mut self) {
        match &mut self.connection {
            ConnectionRow::Never => {}
            // The last contact is not older, so this only orders workers that connect in one tick.
            ConnectionRow::Connecting { since, .. } | ConnectionRow::Online { since, .. } => *since = -HORIZON,
            ConnectionRow::Offline { since, .. } => age(since),
        }
        self.seen.iter_mut().for_each(age);
        self.drain_deadline.iter_mut().for_each(approach);
        self.credential.previous.iter_mut().for_each(|(_, until)| approach(until));
    }
}

impl CredentialRow {
    /// Converts to credentials of the rules.
    pub fn to_credential(self) -> WorkerCredential {
        let digest = session_digest(Session::Newest).to_owned();
        WorkerCredential {
            previous: self
                .previous
                .map(|(token, until)| PreviousSecret { digest: token_digest(token), expires_at: timestamp(until) }),
            session: self.session.map(|token| WorkerSession { digest, token_digest: token_digest(token) }),
            ..WorkerCredential::new(token_digest(self.token))
        }
    }

    /// Converts credentials of the rules.
    pub fn from_credential(credential: &WorkerCredential) -> Self {
        let token = |digest: &str| digest[1..].parse().expect("a token's number");
        Self {
            token: token(&credential.digest),
            previous: credential.previous.as_ref().map(|old| (token(&old.digest), ticks(old.expires_at).max(0))),
            session: credential.session.as_ref().map(|session| token(&session.token_digest)),
        }
    }
}
