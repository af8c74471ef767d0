//! `/api/audit`: the audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::time::Timestamp;

/// Filters of audit entries: the query string of `GET /api/audit/export`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFilters {
    /// Filters by actor: a user, a worker (`worker:w_…`) or `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Filters by action, or by its prefix: `worker.created`, `worker.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Filters by target: an ID or a name. A worker's name also finds renamed and deleted workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Filters by request ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Only entries at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only entries before this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Query string of `GET /api/audit`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditQuery {
    /// The filters.
    #[serde(flatten)]
    pub filters: AuditFilters,
    /// Maximum number of results; if omitted, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditPage {
    /// The entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// Names of the workers in these entries, by ID; for deleted workers, the name that an entry recorded.
    pub worker_names: BTreeMap<String, String>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

impl AuditPage {
    /// Returns the name of a worker that is an actor (`worker:w_…`) or a target (`w_…`).
    pub fn worker_name(&self, subject: &str) -> Option<&str> {
        self.worker_names.get(strip_worker_prefix(subject)).map(String::as_str)
    }
}

/// Returns the worker ID of an actor.
pub fn strip_worker_prefix(actor: &str) -> &str {
    actor.strip_prefix("worker:").unwrap_or(actor)
}

/// One audit entry; also one line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// When it happened.
    pub at: Timestamp,
    /// The actor: a user, `worker:w_…`, `system`, or `unknown`.
    pub actor: String,
    /// The action.
    pub action: String,
    /// The target: an ID or a name.
    pub target: String,
    /// Details of the action.
    pub detail: Value,
    /// The ID of the request that caused it, if any.
    pub request_id: Option<String>,
    /// The entry's chain; each run of a server has its own.
    pub chain: String,
    /// The entry's sequence number in the chain.
    pub seq: i64,
    /// Hash of the previous entry, in hex.
    pub previous: String,
    /// Hash of this entry, in hex.
    pub hash: String,
}

/// An event of a job or a worker, read from the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLogEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The event: `job.submitted`, `job.requeued`, `worker.online`, ….
    pub event: String,
    /// The actor: a user, `worker:w_…`, or `system`.
    pub actor: String,
    /// Details: the attempt, the worker, the reason.
    pub detail: Value,
}

/// `GET /api/audit/verify`: whether the audit log is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditVerification {
    /// Whether no faults were found.
    pub intact: bool,
    /// Number of chains.
    pub chains: u64,
    /// Number of entries that were read.
    pub entries: u64,
    /// The faults, in the order of chains; at most 1000.
    pub faults: Vec<AuditFault>,
    /// Number of further faults that are not listed.
    pub more_faults: u64,
    /// Whether a key was available to verify checkpoints. Without one, a complete rewrite of the log cannot be
    /// excluded.
    pub key_found: bool,
    /// Number of checkpoints that are signed with this key.
    pub checkpoints_signed: u64,
    /// Number of checkpoints that are signed with other keys; they were not verified.
    pub checkpoints_of_other_keys: u64,
    /// Lines of the checkpoint file without a valid signature.
    pub broken_checkpoint_lines: Vec<usize>,
    /// Whether each chain, and each removal by retention, had to be signed. False without a key, and for a file of an
    /// earlier version until a server of this version has started.
    #[serde(default)]
    pub chains_must_be_signed: bool,
}

/// A fault of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFault {
    /// The chain.
    pub chain: String,
    /// The fault's code.
    pub fault: String,
    /// The first affected entry, unless the whole chain is affected.
    pub from: Option<i64>,
    /// The last affected entry.
    pub to: Option<i64>,
    /// A description of the fault.
    pub what: String,
}

/// `GET /api/queue/{id}/events`: all events of a job, oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobEvents {
    /// The events.
    pub events: Vec<AuditLogEvent>,
}
