//! The revisions of configurations: what they were, who stored them, and which jobs run them.

use std::collections::BTreeMap;

use app::domain::audit::Action;
use app::protocol::configs::{Bundle, ConfigDetail, RevisionView, RevisionsPage};
use app::protocol::status::JobStatus;
use serde_json::Value;

use super::Core;
use super::access::Person;
use super::configs::view;
use super::refusal::Refusal;
use crate::store::audit::{Actions, AuditFilter, Reading, StoredEntry};
use crate::store::configs::Use;

/// So many entries of the trail are asked who stored a revision.
const REMEMBERED: u32 = 1_000;

impl Core {
    /// The revisions of a configuration, also of one that was removed.
    pub async fn revisions(&self, person: &Person, name: &str) -> Result<RevisionsPage, Refusal> {
        let mut tx = self.read().await?;
        let stored = tx.revisions(name).await?;
        if stored.is_empty() {
            return Err(Refusal::NoConfig(name.to_owned()));
        }
        let filter = AuditFilter {
            action: Some(Actions::Is(Action::ConfigStored.as_str().to_owned())),
            target: Some(name.to_owned()),
            ..AuditFilter::default()
        };
        let authors = authors(&tx.audit_page(&filter, &Reading::Back(None), REMEMBERED).await?);
        let uses = tx.uses(name, person.sees_only().as_deref()).await?;
        let seen = |revision| RevisionUse::of(&uses, revision);
        let revisions = stored.into_iter().map(|stored| {
            let RevisionUse { jobs, active } = seen(stored.revision);
            RevisionView {
                revision: stored.revision,
                created_by: authors.get(&u64::from(stored.revision)).cloned().or(stored.created_by),
                sha256: stored.sha256,
                created_at: stored.created_at,
                jobs,
                active_jobs: active,
            }
        });
        Ok(RevisionsPage { revisions: revisions.collect(), removed: tx.config(name).await?.is_none() })
    }

    /// One revision, with its files.
    pub async fn config_at(&self, name: &str, revision: u32) -> Result<ConfigDetail, Refusal> {
        let config = self.read().await?.config_revision(name, revision).await?;
        let config = config.ok_or_else(|| Refusal::NoConfig(format!("{name}, revision {revision}")))?;
        Ok(ConfigDetail { config: view(&config), bundle: Bundle { files: config.files.clone() } })
    }
}

/// Who stored which revision.
fn authors(entries: &[StoredEntry]) -> BTreeMap<u64, String> {
    let author = |entry: &StoredEntry| {
        let detail: Value = serde_json::from_str(&entry.detail).ok()?;
        Some((detail["revision"].as_u64()?, entry.actor.clone()))
    };
    entries.iter().filter_map(author).collect()
}

/// How many jobs pinned a revision.
#[derive(Default)]
struct RevisionUse {
    jobs: u64,
    active: u64,
}

impl RevisionUse {
    fn of(uses: &[Use], revision: u32) -> Self {
        uses.iter().filter(|used| used.revision == revision).fold(Self::default(), |sum, used| {
            let ended = JobStatus::parse(&used.state).is_some_and(JobStatus::is_terminal);
            Self { jobs: sum.jobs + used.jobs, active: sum.active + if ended { 0 } else { used.jobs } }
        })
    }
}
