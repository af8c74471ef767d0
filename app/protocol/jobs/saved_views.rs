//! `/api/queue/views`: views of the list of jobs that users have saved.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// A saved view of the list of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedView {
    /// Who saved it.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// The filters, the order and the columns, as the query string of `GET /api/queue`.
    pub query: String,
    /// Whether all users see it.
    pub shared: bool,
    /// When it was saved.
    pub saved_at: Timestamp,
}

/// `GET /api/queue/views`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedViews {
    /// The user's own and the shared ones, by name.
    pub views: Vec<SavedView>,
}

/// `PUT /api/queue/views/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SaveView {
    /// The filters, the order and the columns, as the query string of `GET /api/queue`.
    pub query: String,
    /// Whether all users see it.
    #[serde(default)]
    pub shared: bool,
}

/// Query string of `DELETE /api/queue/views/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedViewQuery {
    /// Who saved it [default: the caller].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}
