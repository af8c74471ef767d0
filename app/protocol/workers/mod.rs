//! `/api/admin/workers`: workers as administrators see them.

pub mod deletion;
#[cfg(all(test, feature = "ssr"))]
pub(crate) mod fixtures;
pub mod history;
pub mod token_lifetime;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::history::StatusSpanView;
pub use self::token_lifetime::{RotateToken, TokenLifetime};
use super::status::{FacetKind, JobStatus, WorkerStatus, WorkerType};
use crate::domain::causes::OfflineCause;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::Sandbox;
use crate::domain::time::Timestamp;
pub use crate::protocol::agents::rejected::{RejectedAgentView, TokenConflictView};
use crate::protocol::gpu::{GpuInfo, GpuView};

/// `POST /api/admin/workers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateWorker {
    /// The worker's name, 1 to 64 characters; must be unique.
    pub name: String,
    /// The worker's type; if omitted, the agent's first registration decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_type: Option<WorkerType>,
    /// Labels for matching jobs.
    #[serde(default)]
    pub labels: Labels,
    /// Whether to ignore labels that the agent reports.
    #[serde(default)]
    pub ignore_reported_labels: bool,
    /// Whether to reject agents of the older protocol: they use the worker's token for all requests and receive
    /// `HF_TOKEN`.
    #[serde(default)]
    pub reject_older_agents: bool,
    /// Networks from which the agent may connect, like `10.0.0.0/8`; if omitted, any.
    #[serde(default)]
    pub allowed_networks: Vec<String>,
    /// When the token expires.
    #[serde(flatten)]
    pub lifetime: TokenLifetime,
}

/// The answer to [`CreateWorker`] and to a rotation: the token is shown only here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedWorker {
    /// The worker's id.
    pub worker_id: WorkerId,
    /// The worker's token, `wt_…`.
    pub token: String,
    /// The worker's name.
    pub name: String,
    /// When the token expires if no agent registers with it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_unused_ends_at: Option<Timestamp>,
    /// The command to run on the GPU host. It reads the token from the environment, not from the command line.
    pub connection_command: String,
}

/// Returns whether a command uses a server address that is reachable only from the server's own machine.
pub fn uses_loopback_address(command: &str) -> bool {
    ["://127.", "://localhost", "://[::1]"].iter().any(|address| command.contains(address))
}

/// Query string of `GET /api/admin/workers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkersQuery {
    /// Only workers with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkerStatus>,
    /// Only workers that match this query: words, each found in a name, host, GPU or label or at the start or end of an
    /// ID, and `status:idle`, `type:ephemeral`, `gpu:a100*`, `label.team=nlp`, `version:0.1*`, `host:…`, `name:…`,
    /// `id:…` or `tls:off`. `:` ignores case and matches a part, or a glob from its start; `=` matches exactly, or by a
    /// glob. `-` before a term excludes its matches; terms with spaces or `:` must be quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only workers with this label, `key=glob`, or with any value of a `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether to return the facets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub facets: bool,
    /// The order: `name`, `status`, `seen` or `gpus`, with a `-` prefix for descending; if omitted, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// Maximum number of results; if omitted, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`, in the same order, or the page of this
    /// `previous_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/workers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkersPage {
    /// The workers, in the requested order.
    pub workers: Vec<WorkerView>,
    /// Total number of matching workers.
    pub total: u64,
    /// Number of them before this page.
    #[serde(default)]
    pub before: u64,
    /// Number of all workers in each status, regardless of filters.
    pub counts: WorkerCounts,
    /// The normalized query, including `status` and `label`.
    #[serde(default)]
    pub q: String,
    /// The facets, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facets: Vec<WorkerFacet>,
    /// Cursor of the previous page, if there is one; empty for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// `GET /api/queue/labels`: what a job can require of the current fleet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetLabels {
    /// The values of workers' labels, by key.
    pub labels: BTreeMap<String, BTreeSet<String>>,
    /// Whether this server runs jobs itself (`target: local`).
    #[serde(default)]
    pub local: bool,
}

/// Number of workers by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerCounts {
    /// `connecting`.
    pub connecting: u64,
    /// `idle`.
    pub idle: u64,
    /// `busy`.
    pub busy: u64,
    /// `draining`.
    pub draining: u64,
    /// `offline`, including those that never connected.
    pub offline: u64,
}

impl WorkerCounts {
    /// Counts a worker.
    pub const fn add(&mut self, status: WorkerStatus) {
        *match status {
            WorkerStatus::Connecting => &mut self.connecting,
            WorkerStatus::Idle => &mut self.idle,
            WorkerStatus::Busy => &mut self.busy,
            WorkerStatus::Draining => &mut self.draining,
            WorkerStatus::Offline => &mut self.offline,
        } += 1;
    }
}

/// A value by which the list can be filtered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerFacet {
    /// The kind of facet.
    pub about: FacetKind,
    /// The value; for a label, `key=value`.
    pub value: String,
    /// Number of workers that match the rest of the query and this value.
    pub count: u64,
    /// Whether the query already contains it.
    pub chosen: bool,
    /// The query with this value added, or removed if it already contains it.
    pub q: String,
}

/// A worker in a list, in both spellings that clients know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct WorkerView {
    /// The worker's id.
    pub id: WorkerId,
    /// The same id.
    pub worker_id: WorkerId,
    /// Unique name.
    pub name: String,
    /// Its status.
    pub status: WorkerStatus,
    /// Since when it has this status.
    pub status_since: Timestamp,
    /// Whether its connection was lost and the heartbeat timeout has not passed yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connection_lost: bool,
    /// When it will be marked offline if it stays silent; only while its connection is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_at: Option<Timestamp>,
    /// Why it is offline; omitted if it is not, or never connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_cause: Option<OfflineCause>,
    /// Whether it is the orchestrator's own machine.
    pub local: bool,
    /// Whether a drain was requested, even while it is offline.
    pub draining: bool,
    /// The reason of the drain, as given by the user.
    pub drain_reason: Option<String>,
    /// When remaining jobs are stopped and requeued.
    pub drain_deadline: Option<Timestamp>,
    /// Maximum number of concurrent jobs.
    pub max_jobs: u32,
    /// Whether it exits after one job; none until an admin or a registration sets it.
    pub worker_type: Option<WorkerType>,
    /// Number of GPUs.
    pub gpu_count: u32,
    /// The first GPU's model.
    pub gpu_name: Option<String>,
    /// Number of GPUs of each model; omitted if all are of one model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<GpuModel>,
    /// The first GPU's memory in GB.
    pub gpu_vram_gb: Option<f64>,
    /// Why its host cannot run new jobs now, as reported by its agent; omitted if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_reason: Option<String>,
    /// Number of its GPUs that are quarantined or in use.
    #[serde(default)]
    pub gpus_unavailable: u32,
    /// Its GPUs; only if a single worker, or GPUs, are requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuView>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator_type: Option<String>,
    /// The same, in the format of older clients.
    pub gpu_info: Option<GpuInfo>,
    /// The labels for matching: the admin's, and the reported ones unless they are ignored.
    pub labels: Labels,
    /// What the agent reported.
    pub reported_labels: Labels,
    /// Whether reported labels are ignored, for this worker or for all workers.
    pub ignore_reported_labels: bool,
    /// The settings of an admin; only if a single worker is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<WorkerSettings>,
    /// Its last heartbeat; none if it never connected.
    pub last_heartbeat: Option<Timestamp>,
    /// The address of its last request.
    #[serde(default)]
    pub last_used_from: Option<String>,
    /// Networks from which its agent may connect; empty for any.
    #[serde(default)]
    pub allowed_networks: Vec<String>,
    /// When its token was created; none if not recorded.
    #[serde(default)]
    pub token_created_at: Option<Timestamp>,
    /// Who created it; none if not recorded.
    #[serde(default)]
    pub token_created_by: Option<String>,
    /// When its token expires; none for never.
    #[serde(default)]
    pub token_expires_at: Option<Timestamp>,
    /// When its token expires if no agent registers with it before; none once one has.
    #[serde(default)]
    pub token_unused_ends_at: Option<Timestamp>,
    /// When the previous token expires, while both are valid.
    #[serde(default)]
    pub old_token_ends_at: Option<Timestamp>,
    /// The last time that a second agent used its token, until it is resolved by a rotation or by an admin.
    #[serde(default)]
    pub token_conflict: Option<TokenConflictView>,
    /// For a worker that never connected: the last agent that was rejected with its token or name; only if a single
    /// worker is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_rejection: Option<RejectedAgentView>,
    /// When its agent last registered, if the record still exists; only if a single worker is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    /// Its status in the last 24 hours, oldest first; each span ends where the next one begins. The first one may have
    /// begun earlier; nothing is recorded before it. Only if a single worker is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_day: Vec<StatusSpanView>,
    /// When the worker was created.
    pub created_at: Timestamp,
    /// The jobs that it has.
    pub jobs: Vec<WorkerJobView>,
    /// The first of [`WorkerView::jobs`], for older clients.
    pub current_job_id: Option<JobId>,
    /// The host's name, as reported.
    pub hostname: Option<String>,
    /// The agent's version, as reported.
    pub agent_version: Option<String>,
    /// Whether the agent verifies this server's certificate, as reported.
    #[serde(default)]
    pub tls_verify: Option<bool>,
    /// The sandbox of its host, as reported; older agents have none.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// The revision of the admin's settings; the `ETag` begins with it.
    #[serde(default)]
    pub revision: String,
}

/// A GPU model of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuModel {
    /// Its name.
    pub name: String,
    /// Number of GPUs of this model.
    pub count: u32,
}

/// The settings of a worker that an admin has set, independent of its agent's reports and of settings for all workers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerSettings {
    /// The labels set by an admin.
    pub labels: Labels,
    /// Whether labels that its agent reports are ignored.
    pub ignore_reported_labels: bool,
    /// Whether agents of the older protocol are rejected.
    #[serde(default)]
    pub reject_older_agents: bool,
}

/// A job of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerJobView {
    /// The job.
    pub job_id: JobId,
    /// Its configuration's name.
    pub config_name: String,
    /// Who submitted it.
    #[serde(default)]
    pub submitted_by: String,
    /// Its status.
    pub status: JobStatus,
    /// Its progress, 0 to 100.
    pub percent: Option<f64>,
    /// Number of the worker's GPUs allocated to it.
    #[serde(default)]
    pub gpus: u32,
}

/// `POST /api/admin/workers/{id}/drain`; the body is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrainWorker {
    /// The reason, shown to other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Jobs that still run after this many seconds are stopped and requeued; if omitted, they may finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
}

/// `PATCH /api/admin/workers/{id}`: omitted fields stay unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditWorker {
    /// A new unique name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it exits after one job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_type: Option<WorkerType>,
    /// All of the admin's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Whether to ignore labels that the agent reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_reported_labels: Option<bool>,
    /// Whether to reject agents of the older protocol, from the next registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject_older_agents: Option<bool>,
    /// All networks from which the agent may connect; empty for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_networks: Option<Vec<String>>,
    /// Whether the alert about two agents with its token is resolved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settle_token_conflict: bool,
}
