//! What an admin changes of a worker.

use super::{Kind, Worker};
use crate::domain::labels::Labels;
use crate::domain::network::Network;

/// What an admin changes; none stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edit {
    /// Its name.
    pub name: Option<String>,
    /// Whether it goes when its job ends.
    pub kind: Option<Kind>,
    /// Its labels, all of them.
    pub labels: Option<Labels>,
    /// Whether labels that its agent reports do not count.
    pub ignores_reported: Option<bool>,
    /// Whether an agent of the older protocol may register.
    pub allows_older: Option<bool>,
    /// Where its agent may come from.
    pub networks: Option<Vec<Network>>,
    /// Whether the alarm about two agents was seen to.
    pub conflict_is_settled: bool,
}

impl Worker {
    /// An admin changes what an admin gave it.
    #[must_use]
    pub fn edited(self, edit: Edit) -> Self {
        Self {
            name: edit.name.unwrap_or(self.name),
            kind: edit.kind.or(self.kind),
            labels: edit.labels.unwrap_or(self.labels),
            ignores_reported: edit.ignores_reported.unwrap_or(self.ignores_reported),
            allows_older: edit.allows_older.unwrap_or(self.allows_older),
            networks: edit.networks.unwrap_or(self.networks),
            conflict: self.conflict.filter(|_| !edit.conflict_is_settled),
            ..self
        }
    }
}
