//! `workers` rows.

use app::domain::capability::Capability;
use app::domain::gpu::{Gpu, MemoryKind, Unavailable, UnavailableReason};
use std::sync::Arc;

use app::domain::labels::Labels;
use app::domain::network::Network;
use app::domain::sandbox::Sandbox;
use app::domain::time::Millis;
use app::domain::worker::credential::{PreviousSecret, WorkerCredential, WorkerSession};
use app::domain::worker::{ConnectionState, Drain, OfflineCause, TokenConflict, Worker, WorkerKind};
use serde::{Deserialize, Serialize};

use super::super::SqlRow;
use super::super::statement::SqlValue;
use super::{NamedRow, to_json};
use crate::store::Result;
use crate::store::workers::{LastContact, StoredWorker};

#[derive(Serialize, Deserialize)]
struct CapabilityJson {
    gpus: Vec<GpuJson>,
    accelerator: String,
    hostname: Option<String>,
    labels: Labels,
    agent_version: Option<String>,
    protocol: Option<u32>,
    driver: Option<String>,
    runtime: Option<String>,
    install_id: Option<String>,
    /// Older rows have none.
    #[serde(default)]
    tls_verify: Option<bool>,
    max_jobs: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unhealthy_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sandbox: Option<Sandbox>,
    #[serde(default)]
    paths: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct GpuJson {
    #[serde(default)]
    index: u32,
    uuid: String,
    name: String,
    vram_gb: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part_of: Option<String>,
    /// Reason and detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unavailable: Option<(String, String)>,
}

/// The columns of a connection.
pub struct ConnectionColumns {
    pub state: &'static str,
    pub since: i64,
    pub stream: Option<String>,
    pub cause: Option<&'static str>,
    pub capability: Option<String>,
    pub lost_jobs: Option<String>,
}

/// In `offline_cause`: the stream has ended.
const LOST_CAUSE: &str = "lost";

/// Converts a worker's connection.
pub fn connection_columns(worker: &Worker) -> ConnectionColumns {
    let (state, cause) = match &worker.connection {
        ConnectionState::NeverConnected => ("never_seen", None),
        ConnectionState::Connecting { connection_lost: false, .. } => ("connecting", None),
        ConnectionState::Connecting { connection_lost: true, .. } => ("connecting", Some(LOST_CAUSE)),
        ConnectionState::Online { .. } => ("online", None),
        ConnectionState::Offline { cause, .. } => ("offline", Some(cause.as_str())),
    };
    ConnectionColumns {
        state,
        since: worker.connection_since().0,
        stream: worker.stream_id().map(str::to_owned),
        cause,
        capability: worker.capability().map(capability_text),
        lost_jobs: Some(worker.lost_jobs()).filter(|jobs| !jobs.is_empty()).map(|jobs| to_json(&jobs)),
    }
}

pub fn worker_from(row: &SqlRow) -> Result<StoredWorker> {
    let row = NamedRow::new(row, "workers", "id")?;
    let kind: Option<String> = row.get("kind")?;
    let kind = match kind.as_deref() {
        None => None,
        Some("ephemeral") => Some(WorkerKind::Ephemeral),
        Some("persistent") => Some(WorkerKind::Persistent),
        Some(other) => return Err(row.corrupt(format!("kind is {other:?}"))),
    };
    let reason: Option<String> = row.get("drain_reason")?;
    let deadline = row.optional_timestamp("drain_deadline")?;
    let worker = Worker {
        id: row.worker_id("id")?,
        name: row.get("name")?,
        kind,
        labels: row.labels("labels")?,
        created_at: row.timestamp("created_at")?,
        connection: connection_from(&row)?,
        drain: row.optional_timestamp("drain_since")?.map(|since| Drain { since, reason, deadline }),
        retired_at: row.optional_timestamp("retired_at")?,
        local: row.boolean("local")?,
        ignores_reported_labels: row.boolean("ignores_reported")?,
        allows_older_agents: row.boolean("allows_older")?,
        networks: networks_from(&row)?,
        token_conflict: conflict_from(&row)?,
        unassigned_run: row.optional_job_id("unassigned_job")?,
        finishing_since: row.optional_timestamp("finishing_since")?,
        lease_duration: row.get::<Option<i64>>("lease")?.map(Millis),
    };
    let last_seen = last_contact_from(&row)?;
    Ok(StoredWorker { worker, credential: Arc::new(credential_from(&row)?), last_seen })
}

pub fn last_contact_from(row: &NamedRow<'_>) -> Result<Option<LastContact>> {
    let from: Option<String> = row.get("last_seen_from")?;
    let from = from.and_then(|address| address.parse().ok());
    Ok(row.optional_timestamp("last_seen")?.map(|at| LastContact { at, from }))
}

/// All columns of a credential except the newest digest: its expiry, the previous token, its creator, its expiry while
/// unused, the session.
pub fn credential_columns(credential: &WorkerCredential) -> [SqlValue; 8] {
    let (old, session) = (credential.previous.as_ref(), credential.session.as_ref());
    let session_field = |field: fn(&WorkerSession) -> &String| session.map(field).cloned().into();
    let millis = |at: app::domain::time::Timestamp| at.0;
    [
        credential.expires_at.map(millis).into(),
        old.map(|old| old.digest.clone()).into(),
        old.map(|old| old.expires_at).map(millis).into(),
        credential.issued_at.map(millis).into(),
        credential.issued_by.clone().into(),
        credential.expires_unused_at.map(millis).into(),
        session_field(|session| &session.digest),
        session_field(|session| &session.token_digest),
    ]
}

/// Networks as stored.
pub fn networks_text(networks: &[Network]) -> String {
    to_json(&networks.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn networks_from(row: &NamedRow<'_>) -> Result<Vec<Network>> {
    let texts: Vec<String> = row.json("networks")?;
    let network = |text: &String| text.parse().map_err(|_| row.corrupt(format!("networks has {text:?}")));
    texts.iter().map(network).collect()
}

fn conflict_from(row: &NamedRow<'_>) -> Result<Option<TokenConflict>> {
    let host: Option<String> = row.get("conflict_host")?;
    Ok(row.optional_timestamp("conflict_at")?.map(|at| TokenConflict { at, host: host.unwrap_or_default() }))
}

fn credential_from(row: &NamedRow<'_>) -> Result<WorkerCredential> {
    let old: Option<String> = row.get("old_token_digest")?;
    let old = old.zip(row.optional_timestamp("old_token_ends_at")?);
    Ok(WorkerCredential {
        digest: row.get("token_digest")?,
        issued_at: row.optional_timestamp("token_created_at")?,
        issued_by: row.get("token_created_by")?,
        expires_at: row.optional_timestamp("token_expires_at")?,
        expires_unused_at: row.optional_timestamp("token_unused_ends_at")?,
        previous: old.map(|(digest, ends_at)| PreviousSecret { digest, expires_at: ends_at }),
        session: session_from(row)?,
    })
}

fn session_from(row: &NamedRow<'_>) -> Result<Option<WorkerSession>> {
    let Some(digest) = row.get("session_digest")? else { return Ok(None) };
    Ok(Some(WorkerSession { digest, token_digest: row.required("session_token", row.get("session_token")?)? }))
}

fn connection_from(row: &NamedRow<'_>) -> Result<ConnectionState> {
    let since = row.timestamp("connection_since")?;
    let state: String = row.get("connection")?;
    match state.as_str() {
        "never_seen" => Ok(ConnectionState::NeverConnected),
        "connecting" => {
            let cause: Option<String> = row.get("offline_cause")?;
            Ok(ConnectionState::Connecting {
                since,
                capability: capability_from(row)?,
                connection_lost: cause.as_deref() == Some(LOST_CAUSE),
            })
        }
        "online" => {
            let stream: Option<String> = row.get("connection_stream")?;
            Ok(ConnectionState::Online {
                since,
                capability: capability_from(row)?,
                stream: row.required("connection_stream", stream)?,
            })
        }
        "offline" => {
            let cause: Option<String> = row.get("offline_cause")?;
            let cause = cause
                .as_deref()
                .and_then(OfflineCause::parse)
                .ok_or_else(|| row.corrupt(format!("offline_cause is {cause:?}")))?;
            let lost_jobs = row.optional_json("lost_jobs")?.unwrap_or_default();
            Ok(ConnectionState::Offline { since, capability: capability_from(row)?, cause, lost_jobs })
        }
        other => Err(row.corrupt(format!("connection is {other:?}"))),
    }
}

fn capability_from(row: &NamedRow<'_>) -> Result<Capability> {
    let stored: CapabilityJson = row.json("capability")?;
    Ok(Capability {
        gpus: stored.gpus.into_iter().map(|gpu| gpu_from(row, gpu)).collect::<Result<_>>()?,
        accelerator: stored.accelerator,
        hostname: stored.hostname,
        labels: stored.labels,
        agent_version: stored.agent_version,
        protocol: stored.protocol,
        driver: stored.driver,
        runtime: stored.runtime,
        install_id: stored.install_id,
        tls_verify: stored.tls_verify,
        max_jobs: stored.max_jobs,
        unhealthy_reason: stored.unhealthy_reason,
        sandbox: stored.sandbox,
        paths: stored.paths,
    })
}

fn gpu_from(row: &NamedRow<'_>, stored: GpuJson) -> Result<Gpu> {
    let memory = stored.memory.map(|name| {
        let kind = MemoryKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.ok_or_else(|| row.corrupt(format!("the memory of GPU {:?} is {name:?}", stored.uuid)))
    });
    let unavailable = stored.unavailable.map(|(name, detail)| {
        let reason = UnavailableReason::ALL.into_iter().find(|reason| reason.as_str() == name);
        let reason =
            reason.ok_or_else(|| row.corrupt(format!("GPU {:?} is unavailable because of {name:?}", stored.uuid)))?;
        Ok(Unavailable { reason, detail })
    });
    Ok(Gpu {
        index: stored.index,
        name: stored.name,
        vram_gb: stored.vram_gb,
        memory: memory.transpose()?,
        part_of: stored.part_of,
        unavailable: unavailable.transpose()?,
        uuid: stored.uuid,
    })
}

fn gpu_json(gpu: &Gpu) -> GpuJson {
    GpuJson {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        name: gpu.name.clone(),
        vram_gb: gpu.vram_gb,
        memory: gpu.memory.map(|kind| kind.as_str().to_owned()),
        part_of: gpu.part_of.clone(),
        unavailable: gpu
            .unavailable
            .as_ref()
            .map(|unavailable| (unavailable.reason.as_str().to_owned(), unavailable.detail.clone())),
    }
}

fn capability_text(capability: &Capability) -> String {
    to_json(&CapabilityJson {
        gpus: capability.gpus.iter().map(gpu_json).collect(),
        accelerator: capability.accelerator.clone(),
        hostname: capability.hostname.clone(),
        labels: capability.labels.clone(),
        agent_version: capability.agent_version.clone(),
        protocol: capability.protocol,
        driver: capability.driver.clone(),
        runtime: capability.runtime.clone(),
        install_id: capability.install_id.clone(),
        tls_verify: capability.tls_verify,
        max_jobs: capability.max_jobs,
        unhealthy_reason: capability.unhealthy_reason.clone(),
        sandbox: capability.sandbox.clone(),
        paths: capability.paths.clone(),
    })
}
