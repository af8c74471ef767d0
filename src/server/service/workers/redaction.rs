//! Views of workers for users who do not administer them: without tokens, addresses and the host's text on its sandbox.

use app::domain::access::Permission;
use app::domain::worker_search::query::{WorkerFilter, WorkerSearchQuery};
use app::protocol::workers::WorkerView;

use crate::service::access::Principal;
use crate::service::error::ServiceError;

impl Principal {
    /// Whether the caller may see everything of a worker.
    pub(in crate::service) fn can_administer(&self) -> bool {
        self.permissions.contains(Permission::AdminWorkers)
    }

    /// Removes what the caller may not see.
    pub(in crate::service) fn redact_worker(&self, worker: WorkerView) -> WorkerView {
        if self.can_administer() { worker } else { redacted(worker) }
    }

    /// Rejects a search whose result would reveal what is hidden.
    pub(in crate::service) fn check_search_query(&self, search: &WorkerSearchQuery) -> Result<(), ServiceError> {
        let reveals_hidden = search.0.iter().any(|term| matches!(term.filter, WorkerFilter::Tls(_)));
        if reveals_hidden && !self.can_administer() {
            Err(ServiceError::PermissionDenied(Permission::AdminWorkers))
        } else {
            Ok(())
        }
    }
}

fn redacted(worker: WorkerView) -> WorkerView {
    let sandbox = worker.sandbox.map(|mut sandbox| {
        sandbox.why_not_more = None;
        if let Some(limits) = &mut sandbox.limits {
            limits.why_not = None;
        }
        sandbox
    });
    WorkerView {
        sandbox,
        settings: None,
        last_used_from: None,
        allowed_networks: Vec::new(),
        token_created_at: None,
        token_created_by: None,
        token_expires_at: None,
        token_unused_ends_at: None,
        old_token_ends_at: None,
        token_conflict: None,
        last_rejection: None,
        tls_verify: None,
        ..worker
    }
}
