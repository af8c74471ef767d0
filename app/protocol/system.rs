//! `/api/admin/system`: how the server is set up, and how it does. Nothing secret is in it.

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::overview::OverviewView;
use crate::domain::time::Timestamp;

/// `GET /api/admin/system`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemView {
    /// The server's clock when it answered.
    pub server_time: Timestamp,
    /// How far the clock that it goes by is ahead of its machine's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// What `/readyz` looks at.
    pub checks: Vec<CheckView>,
    /// The database.
    pub database: DatabaseView,
    /// The servers that share the database.
    pub servers: Vec<ServerView>,
    /// Streams that are open on this server.
    pub streams: StreamsView,
    /// The disk of the data directory; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskView>,
    /// Bytes of the logs in this server's data directory.
    pub log_bytes: u64,
    /// Bytes of all files that jobs made.
    pub artifact_bytes: u64,
    /// Entries of the audit trail.
    pub audit_entries: u64,
    /// When the newest backup of this data directory was taken; left out if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backed_up_at: Option<Timestamp>,
    /// The certificate that it shows; left out where it speaks plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsView>,
    /// What follows from the settings, and what is built in.
    pub in_force: InForceView,
    /// Every setting in the order of `simpletuner server --help`.
    pub settings: Vec<SettingView>,
}

/// `GET /api/admin/system/support`: what whoever helps asks for. Names of workers and configurations are in it, nothing secret is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupportBundle {
    /// As the page of the system shows it.
    pub system: SystemView,
    /// As the overview shows it.
    pub overview: OverviewView,
    /// As `/metrics` tells them, line by line.
    pub metrics: Vec<String>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckView {
    /// Its name.
    pub name: String,
    /// `ok`, `warning` or `failed`.
    pub status: String,
    /// Why, if it is not `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatabaseView {
    /// `sqlite` or `postgres`.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of the write-ahead log, on SQLite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_bytes: Option<u64>,
    /// The newest migration that it has had.
    pub schema: i64,
    /// The newest one that this version knows.
    pub known_schema: i64,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerView {
    /// Its name, which is that of its audit chain.
    pub id: String,
    /// Whether it is the one that answers.
    pub this: bool,
    /// Whether it leads.
    pub leads: bool,
    /// When it last said that it lives; left out where there is one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
}

/// Streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamsView {
    /// Of workers.
    pub workers: u64,
    /// As many as those may be.
    pub most_workers: u64,
    /// Of browsers and commands that follow.
    pub listeners: u64,
}

/// A disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskView {
    /// In all.
    pub total: u64,
    /// Free.
    pub free: u64,
    /// With less than this free, no new jobs are taken.
    pub floor: u64,
    /// Since when that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_since: Option<Timestamp>,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsView {
    /// Of its key.
    pub fingerprint: Fingerprint,
    /// Whether somebody else has signed it.
    pub vouched_for: bool,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// Times and bounds, in seconds where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InForceView {
    /// How often workers send heartbeats.
    pub heartbeat_interval: u64,
    /// Without a word for so long, a worker counts as offline.
    pub heartbeat_timeout: u64,
    /// How long a worker may take to answer an offer.
    pub offer_timeout: u64,
    /// The largest artifact, in bytes.
    pub artifact_limit: u64,
    /// The longest log of an attempt, in bytes.
    pub log_limit: u64,
    /// The most files that are kept of a job.
    pub most_artifacts: u64,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingView {
    /// Its flag.
    pub flag: String,
    /// Its variable.
    pub variable: Option<String>,
    /// What it is; none if it is not set and has no default, `(not shown)` if it is a secret.
    pub value: Option<String>,
    /// Where that came from: `flag`, `environment` or `default`.
    pub source: String,
}
