//! Changes of a worker by an admin.

use super::{Worker, WorkerKind};
use crate::domain::labels::Labels;
use crate::domain::network::Network;

/// Changes of a worker; none leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkerEdit {
    /// The name.
    pub name: Option<String>,
    /// Ephemeral or persistent.
    pub kind: Option<WorkerKind>,
    /// All of its labels.
    pub labels: Option<Labels>,
    /// Whether labels that its agent reports are ignored.
    pub ignores_reported_labels: Option<bool>,
    /// Whether an agent of the older protocol may register.
    pub allows_older_agents: Option<bool>,
    /// The networks from which its agent may connect.
    pub networks: Option<Vec<Network>>,
    /// Whether the alert about two agents is resolved.
    pub resolves_conflict: bool,
}

impl Worker {
    /// Applies the changes of an admin.
    #[must_use]
    pub fn edited(self, edit: WorkerEdit) -> Self {
        Self {
            name: edit.name.unwrap_or(self.name),
            kind: edit.kind.or(self.kind),
            labels: edit.labels.unwrap_or(self.labels),
            ignores_reported_labels: edit.ignores_reported_labels.unwrap_or(self.ignores_reported_labels),
            allows_older_agents: edit.allows_older_agents.unwrap_or(self.allows_older_agents),
            networks: edit.networks.unwrap_or(self.networks),
            token_conflict: self.token_conflict.filter(|_| !edit.resolves_conflict),
            ..self
        }
    }
}
