//! `/api/audit`: who did what, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::time::Timestamp;

/// Which entries: the query string of `GET /api/audit/export`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFilters {
    /// Only what this person, worker (`worker:w_…`) or `system` did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only this action, or all whose words begin so: `worker.created`, `worker.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only what was done to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Only what came of this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Not earlier than this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Earlier than this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// `GET /api/audit`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditQuery {
    /// Which entries.
    #[serde(flatten)]
    pub filters: AuditFilters,
    /// At most so many, 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// What the workers are called of whom these entries tell, by id; without those that are deleted.
    pub worker_names: BTreeMap<String, String>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

impl AuditPage {
    /// What a worker is called that did something (`worker:w_…`), or to which something was done (`w_…`).
    pub fn name_of(&self, subject: &str) -> Option<&str> {
        self.worker_names.get(worker_id(subject)).map(String::as_str)
    }
}

/// The id of a worker that did something.
pub fn worker_id(actor: &str) -> &str {
    actor.strip_prefix("worker:").unwrap_or(actor)
}

/// One entry; a line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who: a person, `worker:w_…`, `system`, or `unknown`.
    pub actor: String,
    /// What.
    pub action: String,
    /// To what: an id or a name.
    pub target: String,
    /// Particulars.
    pub detail: Value,
    /// The request it came with, if any.
    pub request_id: Option<String>,
    /// Its chain: one for each life of a server.
    pub chain: String,
    /// Its number in the chain.
    pub seq: i64,
    /// The hash of the entry before it, in hex.
    pub previous: String,
    /// Its own hash, in hex.
    pub hash: String,
}

/// One thing that happened to a job or a worker, as the audit trail has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrailEvent {
    /// When.
    pub at: Timestamp,
    /// What: `job.submitted`, `job.requeued`, `worker.online`, ….
    pub event: String,
    /// Who did it: a person, `worker:w_…`, or `system`.
    pub actor: String,
    /// Particulars: the attempt, the worker, the reason.
    pub detail: Value,
}

/// `GET /api/audit/verify`: whether the trail is as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditVerdict {
    /// Whether nothing is wrong with it.
    pub intact: bool,
    /// How many chains there are.
    pub chains: u64,
    /// How many entries were read.
    pub entries: u64,
    /// What is wrong, in the order of chains; a thousand at most.
    pub faults: Vec<AuditFault>,
    /// How much more is wrong than is told.
    pub more_faults: u64,
    /// Whether there was a key to check checkpoints with. Without one, that the whole was written anew is not excluded.
    pub key_found: bool,
    /// Checkpoints that this key has signed.
    pub checkpoints_signed: u64,
    /// Checkpoints of other keys, which were not checked.
    pub checkpoints_of_other_keys: u64,
    /// Lines of the file of checkpoints that the key has not signed.
    pub broken_checkpoint_lines: Vec<usize>,
    /// Whether each chain, and what retention removed of it, had to be signed. Not with the file of an earlier version, until a
    /// server of this one has started, and not without a key.
    #[serde(default)]
    pub chains_must_be_signed: bool,
}

/// Something that is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditFault {
    /// Which chain.
    pub chain: String,
    /// What, as a word.
    pub fault: String,
    /// The first entry that is meant, unless it is the whole chain.
    pub from: Option<i64>,
    /// The last one.
    pub to: Option<i64>,
    /// What, as a sentence.
    pub what: String,
}

/// `GET /api/queue/{id}/events`: everything that happened to a job, oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobEvents {
    /// As the audit trail has it.
    pub events: Vec<TrailEvent>,
}
