//! `/api/admin/system`: the server's settings and state. Contains no secrets.

pub mod fingerprint;

use serde::{Deserialize, Serialize};

use self::fingerprint::Fingerprint;
use super::overview::OverviewView;
use crate::domain::time::Timestamp;

/// `GET /api/admin/system`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemView {
    /// The server's clock when it answered.
    pub server_time: Timestamp,
    /// How far the server's clock is ahead of the machine's clock, in milliseconds.
    pub clock_ahead_ms: i64,
    /// The server's version.
    pub version: String,
    /// When the server started.
    pub started_at: Timestamp,
    /// The checks of `/readyz`.
    pub checks: Vec<CheckView>,
    /// The database.
    pub database: DatabaseView,
    /// The servers that share the database.
    pub servers: Vec<ServerView>,
    /// Open streams of this server.
    pub streams: StreamsView,
    /// The disk of the data directory; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskView>,
    /// Bytes of logs in this server's data directory.
    pub log_bytes: u64,
    /// Bytes of all artifacts.
    pub artifact_bytes: u64,
    /// Number of entries in the audit log.
    pub audit_entries: u64,
    /// When the newest backup of this data directory was created; omitted if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backed_up_at: Option<Timestamp>,
    /// The server's certificate; omitted for plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsView>,
    /// Effective limits: derived from settings, and built in.
    pub in_force: EffectiveLimitsView,
    /// All settings in the order of `simpletuner server --help`.
    pub settings: Vec<SettingView>,
}

/// `GET /api/admin/system/support`: data for support requests. Contains names of workers and configurations, but no
/// secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupportBundle {
    /// The system page.
    pub system: SystemView,
    /// The overview.
    pub overview: OverviewView,
    /// The output of `/metrics`, line by line.
    pub metrics: Vec<String>,
}

/// A health check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckView {
    /// Its name.
    pub name: String,
    /// `ok`, `warning` or `failed`.
    pub status: String,
    /// The reason, if it is not `ok`.
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
    /// Its size in bytes.
    pub bytes: u64,
    /// Size of the write-ahead log in bytes (SQLite only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_bytes: Option<u64>,
    /// The newest applied migration.
    pub schema: i64,
    /// The newest migration that this version knows.
    pub known_schema: i64,
}

/// A server of this database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerView {
    /// The server's ID; also the name of its audit chain.
    pub id: String,
    /// Whether it is the server that sent this response.
    pub this: bool,
    /// Whether it is the leader.
    pub leads: bool,
    /// When it last reported that it is alive; omitted if there is only one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// The version of its program; omitted by versions that do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Numbers of open streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamsView {
    /// Streams of workers.
    pub workers: u64,
    /// Maximum number of streams of workers.
    pub most_workers: u64,
    /// Streams of browsers and of commands that follow.
    pub listeners: u64,
}

/// A disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskView {
    /// Total size.
    pub total: u64,
    /// Free space.
    pub free: u64,
    /// New jobs are rejected if less than this is free.
    pub floor: u64,
    /// Since when less than that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_since: Option<Timestamp>,
}

/// The server's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsView {
    /// Fingerprint of its key.
    pub fingerprint: Fingerprint,
    /// Whether it is signed by an authority, not self-signed.
    pub vouched_for: bool,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// Times and limits, in seconds unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectiveLimitsView {
    /// Interval of workers' heartbeats.
    pub heartbeat_interval: u64,
    /// A worker is marked offline after this time without a heartbeat.
    pub heartbeat_timeout: u64,
    /// Time within which a worker must accept an offer.
    pub offer_timeout: u64,
    /// Maximum size of an artifact, in bytes.
    pub artifact_limit: u64,
    /// Maximum size of an attempt's log, in bytes.
    pub log_limit: u64,
    /// Maximum number of artifacts of a job.
    pub most_artifacts: u64,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingView {
    /// Its flag.
    pub flag: String,
    /// Its environment variable.
    pub variable: Option<String>,
    /// Its value; none if it is not set and has no default, `(not shown)` if it is a secret.
    pub value: Option<String>,
    /// The source of the value: `flag`, `environment` or `default`.
    pub source: String,
}
