//! `workers` rows.

use app::domain::capability::Capability;
use app::domain::gpu::{Gpu, MemoryKind, Withheld, WithheldReason};
use std::sync::Arc;

use app::domain::labels::Labels;
use app::domain::network::Network;
use app::domain::sandbox::Sandbox;
use app::domain::time::Millis;
use app::domain::worker::credential::{Credential, Outgoing, Session};
use app::domain::worker::{Conflict, Drain, Kind, Link, OfflineCause, Worker};
use serde::{Deserialize, Serialize};

use super::super::Row;
use super::super::statement::Value;
use super::{Named, to_json};
use crate::store::Result;
use crate::store::workers::{Seen, StoredWorker};

/// A capability as it is kept.
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
    unfit: Option<String>,
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
    withheld: Option<(String, String)>,
}

/// The words of a link, and what belongs to it.
pub struct LinkColumns {
    pub word: &'static str,
    pub since: i64,
    pub stream: Option<String>,
    pub cause: Option<&'static str>,
    pub capability: Option<String>,
}

/// A link as columns.
pub fn link_columns(worker: &Worker) -> LinkColumns {
    let (word, cause) = match &worker.link {
        Link::NeverSeen => ("never_seen", None),
        Link::Connecting { .. } => ("connecting", None),
        Link::Online { .. } => ("online", None),
        Link::Offline { cause: OfflineCause::Disconnected, .. } => ("offline", Some("disconnected")),
        Link::Offline { cause: OfflineCause::Silent, .. } => ("offline", Some("silent")),
    };
    LinkColumns {
        word,
        since: worker.link_since().0,
        stream: worker.stream().map(str::to_owned),
        cause,
        capability: worker.capability().map(capability_text),
    }
}

/// A worker from its row.
pub fn worker(row: &Row) -> Result<StoredWorker> {
    let row = Named::new(row, "workers", "id")?;
    let kind: Option<String> = row.get("kind")?;
    let kind = match kind.as_deref() {
        None => None,
        Some("ephemeral") => Some(Kind::Ephemeral),
        Some("persistent") => Some(Kind::Persistent),
        Some(other) => return Err(row.broken(format!("kind is {other:?}"))),
    };
    let reason: Option<String> = row.get("drain_reason")?;
    let deadline = row.optional_moment("drain_deadline")?;
    let worker = Worker {
        id: row.worker_id("id")?,
        name: row.get("name")?,
        kind,
        labels: row.labels("labels")?,
        created_at: row.moment("created_at")?,
        link: link(&row)?,
        drain: row.optional_moment("drain_since")?.map(|since| Drain { since, reason, deadline }),
        spent: row.optional_moment("spent_at")?,
        local: row.flag("local")?,
        ignores_reported: row.flag("ignores_reported")?,
        allows_older: row.flag("allows_older")?,
        networks: networks(&row)?,
        conflict: conflict(&row)?,
        astray: row.optional_job_id("astray_job")?,
        finishing: row.optional_moment("finishing_since")?,
        lease: row.get::<Option<i64>>("lease")?.map(Millis),
    };
    let from: Option<String> = row.get("last_seen_from")?;
    let from = from.and_then(|address| address.parse().ok());
    let last_seen = row.optional_moment("last_seen")?.map(|at| Seen { at, from });
    Ok(StoredWorker { worker, credential: Arc::new(credential(&row)?), last_seen })
}

/// All of a credential but the newest digest, as columns: its end, the token before it, who made it, its end while unused, the session.
pub fn credential_columns(credential: &Credential) -> [Value; 8] {
    let (old, session) = (credential.old.as_ref(), credential.session.as_ref());
    let of_session = |field: fn(&Session) -> &String| session.map(field).cloned().into();
    let ends = |at: app::domain::time::Timestamp| at.0;
    [
        credential.expires_at.map(ends).into(),
        old.map(|old| old.digest.clone()).into(),
        old.map(|old| old.ends_at).map(ends).into(),
        credential.made_at.map(ends).into(),
        credential.made_by.clone().into(),
        credential.unused_ends_at.map(ends).into(),
        of_session(|session| &session.digest),
        of_session(|session| &session.token),
    ]
}

/// Networks as they are kept.
pub fn networks_text(networks: &[Network]) -> String {
    to_json(&networks.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn networks(row: &Named<'_>) -> Result<Vec<Network>> {
    let texts: Vec<String> = row.json("networks")?;
    let network = |text: &String| text.parse().map_err(|_| row.broken(format!("networks has {text:?}")));
    texts.iter().map(network).collect()
}

fn conflict(row: &Named<'_>) -> Result<Option<Conflict>> {
    let host: Option<String> = row.get("conflict_host")?;
    Ok(row.optional_moment("conflict_at")?.map(|at| Conflict { at, host: host.unwrap_or_default() }))
}

fn credential(row: &Named<'_>) -> Result<Credential> {
    let old: Option<String> = row.get("old_token_digest")?;
    let old = old.zip(row.optional_moment("old_token_ends_at")?);
    Ok(Credential {
        digest: row.get("token_digest")?,
        made_at: row.optional_moment("token_made_at")?,
        made_by: row.get("token_made_by")?,
        expires_at: row.optional_moment("token_expires_at")?,
        unused_ends_at: row.optional_moment("token_unused_ends_at")?,
        old: old.map(|(digest, ends_at)| Outgoing { digest, ends_at }),
        session: session(row)?,
    })
}

fn session(row: &Named<'_>) -> Result<Option<Session>> {
    let Some(digest) = row.get("session_digest")? else { return Ok(None) };
    Ok(Some(Session { digest, token: row.required("session_token", row.get("session_token")?)? }))
}

fn link(row: &Named<'_>) -> Result<Link> {
    let since = row.moment("link_since")?;
    let word: String = row.get("link")?;
    match word.as_str() {
        "never_seen" => Ok(Link::NeverSeen),
        "connecting" => Ok(Link::Connecting { since, capability: capability(row)? }),
        "online" => {
            let stream: Option<String> = row.get("link_stream")?;
            Ok(Link::Online { since, capability: capability(row)?, stream: row.required("link_stream", stream)? })
        }
        "offline" => {
            let cause: Option<String> = row.get("offline_cause")?;
            let cause = match cause.as_deref() {
                Some("disconnected") => OfflineCause::Disconnected,
                Some("silent") => OfflineCause::Silent,
                other => return Err(row.broken(format!("offline_cause is {other:?}"))),
            };
            Ok(Link::Offline { since, capability: capability(row)?, cause })
        }
        other => Err(row.broken(format!("link is {other:?}"))),
    }
}

fn capability(row: &Named<'_>) -> Result<Capability> {
    let kept: CapabilityJson = row.json("capability")?;
    Ok(Capability {
        gpus: kept.gpus.into_iter().map(|kept| gpu(row, kept)).collect::<Result<_>>()?,
        accelerator: kept.accelerator,
        hostname: kept.hostname,
        labels: kept.labels,
        agent_version: kept.agent_version,
        protocol: kept.protocol,
        driver: kept.driver,
        runtime: kept.runtime,
        install_id: kept.install_id,
        tls_verify: kept.tls_verify,
        max_jobs: kept.max_jobs,
        unfit: kept.unfit,
        sandbox: kept.sandbox,
        paths: kept.paths,
    })
}

fn gpu(row: &Named<'_>, kept: GpuJson) -> Result<Gpu> {
    let memory = kept.memory.map(|word| {
        let kind = MemoryKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| row.broken(format!("the memory of GPU {:?} is {word:?}", kept.uuid)))
    });
    let withheld = kept.withheld.map(|(word, detail)| {
        let reason = WithheldReason::ALL.into_iter().find(|reason| reason.as_str() == word);
        let reason =
            reason.ok_or_else(|| row.broken(format!("GPU {:?} is withheld because of {word:?}", kept.uuid)))?;
        Ok(Withheld { reason, detail })
    });
    Ok(Gpu {
        index: kept.index,
        name: kept.name,
        vram_gb: kept.vram_gb,
        memory: memory.transpose()?,
        part_of: kept.part_of,
        withheld: withheld.transpose()?,
        uuid: kept.uuid,
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
        withheld: gpu.withheld.as_ref().map(|why| (why.reason.as_str().to_owned(), why.detail.clone())),
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
        unfit: capability.unfit.clone(),
        sandbox: capability.sandbox.clone(),
        paths: capability.paths.clone(),
    })
}
