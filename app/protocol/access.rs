//! Who is asking.

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;

/// What the server knows of the caller: `GET /api/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// The caller's name, for the page's corner.
    pub name: String,
    /// Whether the server runs for one person on this machine, without accounts.
    pub single_user: bool,
    /// The server's version.
    pub server_version: String,
    /// The address under which this server was reached, for commands to copy: `http://host:8001`.
    pub base_url: String,
    /// What agents have to know of this server's key, where no authority vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}
