//! `/api/admin/workers`: workers as administrators see them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gpu::{GpuInfo, GpuView};
use super::status::{FacetKind, JobStatus, WorkerStatus, WorkerType};
pub use super::token_life::{RotateToken, TokenLife};
use super::worker_history::Stood;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::Sandbox;
use crate::domain::time::Timestamp;

/// `POST /api/admin/workers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateWorker {
    /// Unique among workers, 1 to 64 characters.
    pub name: String,
    /// Left open, the agent's first registration decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_type: Option<WorkerType>,
    /// Labels to match jobs by.
    #[serde(default)]
    pub labels: Labels,
    /// Whether labels that the agent reports are not to count.
    #[serde(default)]
    pub ignore_reported_labels: bool,
    /// Whether agents of the older protocol are refused. They use the worker's token for everything and get `HF_TOKEN` with
    /// the offer of a job.
    #[serde(default)]
    pub refuse_older_agents: bool,
    /// Networks from which the agent may come, like `10.0.0.0/8`; left out, any.
    #[serde(default)]
    pub allowed_networks: Vec<String>,
    /// When the token ends.
    #[serde(flatten)]
    pub life: TokenLife,
}

/// The answer to [`CreateWorker`] and to a rotation: the only time the token is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedWorker {
    /// The worker's id.
    pub worker_id: WorkerId,
    /// The worker's secret, `wt_…`.
    pub token: String,
    /// The worker's name.
    pub name: String,
    /// When the token ends if no agent registers with it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_unused_ends_at: Option<Timestamp>,
    /// What to run on the GPU machine. It reads the token from the environment, not from the command line.
    pub connection_command: String,
}

/// Whether a command names the server by an address that only the server's own machine reaches.
pub fn names_own_host(command: &str) -> bool {
    ["://127.0.0.1", "://localhost", "://[::1]"].iter().any(|own| command.contains(own))
}

/// `GET /api/admin/workers`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkersQuery {
    /// Only workers in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkerStatus>,
    /// Only workers that this fits: words, each in a name, host, GPU or label or at an end of an id, and `status:idle`,
    /// `type:ephemeral`, `gpu:a100*`, `label.team=nlp`, `version:0.1*`, `host:…`, `name:…`, `id:…` or `tls:off`. A `:` asks
    /// in any case, for a part, or for a glob from the beginning of one; a `=` for exactly that, or a glob of it. A `-` before
    /// a word leaves out what it fits; what has blanks or a `:` stands in quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only workers with a label, `key=glob`, or with any value of a `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it is wanted what else could be asked, with how many workers each would leave.
    #[serde(default)]
    pub facets: bool,
    /// In which order: `name`, `status`, `seen` or `gpus`, with a `-` before it for the largest first; left out, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// At most so many; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`, in the same order, or show the one that another gave as its
    /// `previous_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/workers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkersPage {
    /// In the order that was asked for.
    pub workers: Vec<WorkerView>,
    /// How many match the filters in all.
    pub total: u64,
    /// How many of them come before those that are shown.
    #[serde(default)]
    pub before: u64,
    /// How many workers there are in each status, whatever the filters.
    pub counts: WorkerCounts,
    /// The question as it was understood, with `status` and `label` in it.
    #[serde(default)]
    pub q: String,
    /// What else could be asked, if that was wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facets: Vec<WorkerFacet>,
    /// Where the page before starts, if there is one; empty for the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// `GET /api/queue/labels`: what a job can ask for, as the fleet is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetLabels {
    /// The values that workers have, by key.
    pub labels: BTreeMap<String, BTreeSet<String>>,
    /// Whether this server runs jobs itself (`target: local`).
    #[serde(default)]
    pub local: bool,
}

/// Workers by status.
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
    /// `offline`, those never contacted included.
    pub offline: u64,
}

impl WorkerCounts {
    /// Counts one more.
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

/// Something by which the list can be narrowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerFacet {
    /// What it is about.
    pub about: FacetKind,
    /// What is asked of it; of a label, `key=value`.
    pub value: String,
    /// How many workers that would leave of those that the rest of the question leaves.
    pub count: u64,
    /// Whether it is asked already.
    pub chosen: bool,
    /// The question with it, or without it if it is asked already.
    pub q: String,
}

/// A worker in a list, under both spellings that clients know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerView {
    /// The worker's id.
    pub id: WorkerId,
    /// The same id.
    pub worker_id: WorkerId,
    /// Unique name.
    pub name: String,
    /// Where it stands.
    pub status: WorkerStatus,
    /// Since when it stands there.
    pub status_since: Timestamp,
    /// Whether it is the orchestrator's own machine.
    pub local: bool,
    /// Whether a drain is wished, also while it is offline.
    pub draining: bool,
    /// Why, in the words of whoever asked.
    pub drain_reason: Option<String>,
    /// When what still runs is stopped and goes back to the queue.
    pub drain_deadline: Option<Timestamp>,
    /// How many jobs it takes at once.
    pub max_jobs: u32,
    /// Whether it leaves after a job; none until an admin or a registration said so.
    pub worker_type: Option<WorkerType>,
    /// How many GPUs it reported.
    pub gpu_count: u32,
    /// The first GPU's model.
    pub gpu_name: Option<String>,
    /// How many it has of each model; left out where all are of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<GpuModel>,
    /// The first GPU's memory in GB.
    pub gpu_vram_gb: Option<f64>,
    /// Why its host is fit for no new job now, in its agent's words; left out, it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// How many of its GPUs no job may have now: their agent withholds them.
    #[serde(default)]
    pub gpus_withheld: u32,
    /// Its GPUs; only where one worker, or GPUs, are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuView>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator_type: Option<String>,
    /// The same, as older clients read it.
    pub gpu_info: Option<GpuInfo>,
    /// The labels that count for matching: the admin's, and the reported ones unless they are ignored.
    pub labels: Labels,
    /// What the agent reported.
    pub reported_labels: Labels,
    /// Whether that is ignored, here or on all workers.
    pub ignore_reported_labels: bool,
    /// What an admin has set of it; only where one worker is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<WorkerSettings>,
    /// When it was last heard of; none if never.
    pub last_heartbeat: Option<Timestamp>,
    /// The address from which it was last heard of.
    #[serde(default)]
    pub last_used_from: Option<String>,
    /// Networks from which its agent may come; none for any.
    #[serde(default)]
    pub allowed_networks: Vec<String>,
    /// When its token was made; none where that was not written down.
    #[serde(default)]
    pub token_made_at: Option<Timestamp>,
    /// Who made it; none where that was not written down.
    #[serde(default)]
    pub token_made_by: Option<String>,
    /// When its token ends; none for never.
    #[serde(default)]
    pub token_expires_at: Option<Timestamp>,
    /// When its token ends if no agent registers with it by then; none once one has.
    #[serde(default)]
    pub token_unused_ends_at: Option<Timestamp>,
    /// When the token before it ends, while both are good.
    #[serde(default)]
    pub old_token_ends_at: Option<Timestamp>,
    /// The last time that a second agent came with its token, until that is settled: by a rotation, or by a word.
    #[serde(default)]
    pub token_conflict: Option<TokenConflict>,
    /// Of a worker that was never heard of: the last time that an agent was refused with its token, or under its name,
    /// since the token was made; only where one worker is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<RefusedAgent>,
    /// When its agent registered last, as far as that is still on record; only where one worker is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
    /// How it stood in the last 24 hours, oldest first, each without a gap until the next one's moment: the first may have
    /// begun earlier than it says; what came before the first is not on record any more, or it was not made yet. Only where
    /// one worker is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_day: Vec<Stood>,
    /// When the admin made it.
    pub created_at: Timestamp,
    /// The jobs it holds.
    pub jobs: Vec<HeldJob>,
    /// The first of [`WorkerView::jobs`], as older clients read it.
    pub current_job_id: Option<JobId>,
    /// The host's name, as reported.
    pub hostname: Option<String>,
    /// The agent's version, as reported.
    pub agent_version: Option<String>,
    /// Whether the agent verifies this server's certificate, as reported.
    #[serde(default)]
    pub tls_verify: Option<bool>,
    /// How its host confines trainers, as reported; older agents confine none.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// The name of what people have set of it; the `ETag` begins with it.
    #[serde(default)]
    pub revision: String,
}

/// A model of GPU on a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuModel {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub count: u32,
}

/// What an admin has set of a worker, whatever its agent reports and the server is told of all workers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerSettings {
    /// The labels that it was given.
    pub labels: Labels,
    /// Whether those that its agent reports are ignored.
    pub ignore_reported_labels: bool,
    /// Whether agents of the older protocol are refused.
    #[serde(default)]
    pub refuse_older_agents: bool,
}

/// Two agents came with one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenConflict {
    /// When the one that was refused came.
    pub at: Timestamp,
    /// From which host, as far as it is known.
    pub host: String,
}

/// A registration that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedAgent {
    /// When.
    pub at: Timestamp,
    /// The code of the problem that it was answered.
    pub reason: String,
    /// From which address, as far as it is known.
    pub from: Option<String>,
}

/// A job on a worker, in the worker's row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldJob {
    /// The job.
    pub job_id: JobId,
    /// Its configuration's name.
    pub config_name: String,
    /// Who submitted it.
    #[serde(default)]
    pub submitted_by: String,
    /// Where it stands.
    pub status: JobStatus,
    /// How far it is, 0 to 100.
    pub percent: Option<f64>,
    /// How many of the worker's GPUs it was granted.
    #[serde(default)]
    pub gpus: u32,
}

/// `POST /api/admin/workers/{id}/drain`; the body may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrainWorker {
    /// Why, for whoever looks later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// After so many seconds what still runs is stopped and goes back to the queue; left out, it may finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
}

/// `PATCH /api/admin/workers/{id}`: what is left out stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditWorker {
    /// A new unique name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it leaves after a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_type: Option<WorkerType>,
    /// The admin's labels, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Whether labels that the agent reports are not to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_reported_labels: Option<bool>,
    /// Whether agents of the older protocol are refused from the next registration on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse_older_agents: Option<bool>,
    /// Networks from which the agent may come, all of them; an empty list for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_networks: Option<Vec<String>>,
    /// Whether the alarm about two agents with its token was seen to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settle_token_conflict: bool,
}
