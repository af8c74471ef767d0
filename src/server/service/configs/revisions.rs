//! Revisions of configurations: their contents, authors, and the jobs that run them.

use std::collections::BTreeMap;

use app::domain::audit::AuditAction;
use app::protocol::configs::{ConfigBundle, ConfigDetail, RevisionView, RevisionsPage};
use app::protocol::jobs::JobCounts;
use app::protocol::status::JobStatus;
use serde_json::Value;

use crate::service::access::Principal;
use crate::service::configs::ConfigService;
use crate::service::configs::config_not_found;
use crate::service::configs::config_view;
use crate::service::error::ServiceError;
use crate::store::audit::{ActionFilter, AuditFilter, AuditOrder, StoredAuditEntry};
use crate::store::configs::RevisionUsage;

/// The maximum number of audit entries that are searched for authors of revisions.
const MAX_ENTRIES_READ: u32 = 1_000;

impl ConfigService {
    /// Returns the revisions of a configuration, also of a deleted one.
    pub async fn revisions(&self, principal: &Principal, name: &str) -> Result<RevisionsPage, ServiceError> {
        let mut tx = self.context.read().await?;
        let stored = tx.revisions(name).await?;
        if stored.is_empty() {
            return Err(config_not_found(&mut *tx, name).await?);
        }
        let filter = AuditFilter {
            action: Some(ActionFilter::Is(AuditAction::ConfigStored.as_str().to_owned())),
            targets: vec![name.to_owned()],
            ..AuditFilter::default()
        };
        let authors =
            revision_authors(&tx.audit_page(&filter, &AuditOrder::NewestFirst(None), MAX_ENTRIES_READ).await?);
        let usage = tx.revision_usage(name, principal.visible_owner().as_deref()).await?;
        let revisions = stored.into_iter().map(|stored| {
            let job_counts = count_jobs(&usage, stored.revision);
            RevisionView {
                revision: stored.revision,
                // The audit log comes first, because it also names the token; retention may have removed its entry.
                created_by: authors.get(&u64::from(stored.revision)).cloned().or(stored.created_by),
                sha256: stored.sha256,
                created_at: stored.created_at,
                jobs: usage.iter().filter(|entry| entry.revision == stored.revision).map(|entry| entry.jobs).sum(),
                active_jobs: job_counts.waiting + job_counts.running,
                job_counts,
            }
        });
        Ok(RevisionsPage { revisions: revisions.collect(), removed: tx.config(name).await?.is_none() })
    }

    /// Returns one revision with its files.
    pub async fn config_at(&self, name: &str, revision: u32) -> Result<ConfigDetail, ServiceError> {
        let config = self.context.read().await?.config_revision(name, revision).await?;
        let config =
            config.ok_or_else(|| ServiceError::ConfigNotFound(format!("{name}, revision {revision}"), Vec::new()))?;
        Ok(ConfigDetail { config: config_view(&config), bundle: ConfigBundle { files: config.files.clone() } })
    }
}

/// Returns who stored which revision.
fn revision_authors(entries: &[StoredAuditEntry]) -> BTreeMap<u64, String> {
    let author = |entry: &StoredAuditEntry| {
        let detail: Value = serde_json::from_str(&entry.detail).ok()?;
        Some((detail["revision"].as_u64()?, entry.actor.clone()))
    };
    entries.iter().filter_map(author).collect()
}

/// Returns the jobs that use a revision.
fn count_jobs(usage: &[RevisionUsage], revision: u32) -> JobCounts {
    JobCounts::from_sums(|is_counted| {
        let has_status = |entry: &&RevisionUsage| JobStatus::parse(&entry.state).is_some_and(is_counted);
        usage.iter().filter(|entry| entry.revision == revision).filter(has_status).map(|entry| entry.jobs).sum()
    })
}
