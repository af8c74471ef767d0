//! How the server is set up, and how it does, for whoever runs it.

use app::protocol::system::{CheckView, DatabaseView, DiskView, InForceView, ServerView, StreamsView, SystemView};

use super::Core;
use super::readiness::Found;
use super::refusal::Refusal;
use crate::clock::{Clock, SystemClock};

impl Core {
    /// What the use cases know of it; the edge adds the settings, the certificate and the newest backup.
    pub async fn system(&self) -> Result<SystemView, Refusal> {
        let checks = self.readiness().await;
        let log_bytes = self.logs.bytes().await?;
        let mut tx = self.read().await?;
        let (facts, schema) = (tx.database().await?, tx.schema_version().await?);
        let (servers, artifact_bytes) = (tx.known_servers(self.policy.server_life).await?, tx.artifact_bytes().await?);
        let heads = tx.audit_heads().await?;
        drop(tx);
        let open = self.hub.open();
        let server = |known: crate::store::servers::KnownServer| ServerView {
            this: known.id == self.server,
            id: known.id,
            leads: known.leads,
            seen_at: known.seen_at,
        };
        Ok(SystemView {
            server_time: self.now(),
            clock_ahead_ms: (self.now() - SystemClock.now()).0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.metrics.started_at,
            checks: checks.into_iter().map(check).collect(),
            database: DatabaseView {
                engine: facts.engine.to_owned(),
                version: facts.version,
                bytes: facts.bytes,
                wal_bytes: facts.wal_bytes,
                schema,
                known_schema: self.store.known_schema(),
            },
            servers: servers.into_iter().map(server).collect(),
            streams: StreamsView {
                workers: open.workers as u64,
                most_workers: self.policy.max_streams as u64,
                listeners: open.listeners as u64,
            },
            disk: self.room.space().map(|space| DiskView {
                total: space.total,
                free: space.free,
                floor: self.room.floor(),
                full_since: self.room.full_since(),
            }),
            log_bytes,
            artifact_bytes,
            audit_entries: heads.values().map(|head| (head.newest.seq - head.removed.seq).max(0).unsigned_abs()).sum(),
            backed_up_at: None,
            tls: None,
            in_force: self.in_force(),
            settings: Vec::new(),
        })
    }

    fn in_force(&self) -> InForceView {
        let policy = &self.policy;
        InForceView {
            heartbeat_interval: policy.heartbeat_interval_seconds(),
            heartbeat_timeout: (policy.heartbeat_timeout.0 / 1_000).unsigned_abs(),
            offer_timeout: (policy.offer_timeout.0 / 1_000).unsigned_abs(),
            artifact_limit: policy.artifact_limit,
            log_limit: policy.log_limit,
            most_artifacts: policy.most_artifacts,
        }
    }
}

fn check((name, found): (&'static str, Found)) -> CheckView {
    let (status, detail) = match found {
        Found::Well => ("ok", None),
        Found::Worth(why) => ("warning", Some(why)),
        Found::Wrong(why) => ("failed", Some(why)),
    };
    CheckView { name: name.to_owned(), status: status.to_owned(), detail: detail.map(str::to_owned) }
}
