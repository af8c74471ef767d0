//! What the writer knows of workers and of jobs that live, so that it need not read them for each decision.
//!
//! Whatever it writes of them goes through here too, so that this says what the database will say after the commit.
//! After a rollback, or when another server has written meanwhile, it is emptied, and filled when it is next asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use async_trait::async_trait;

use super::jobs::whole_jobs;
use super::statement::sql;
use super::workers::whole_workers;
use super::{Db, Session};
use crate::store::Result;
use crate::store::live::{Live, Planning};
use crate::store::workers::StoredWorker;

/// See the module.
#[derive(Default)]
pub struct Mirror {
    /// The database's generation that this is of; engines that serve one server have none.
    generation: i64,
    /// The newest entry of the audit chain: its number and hash.
    pub(super) head: Option<(i64, String)>,
    known: Option<Known>,
}

struct Known {
    workers: BTreeMap<WorkerId, Arc<StoredWorker>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
}

impl Mirror {
    /// The transaction that has begun makes this generation: if the one before was not this writer's, another server
    /// has written since.
    pub fn is_of(&mut self, generation: i64) {
        if generation != self.generation + 1 {
            self.empty();
        }
        self.generation = generation;
    }

    /// Knows nothing any more.
    pub fn empty(&mut self) {
        self.known = None;
        self.head = None;
    }
}

impl<'c> Session<'c> {
    /// Wraps the connection of the one who writes.
    pub fn writing(db: Db<'c>, chain: Arc<str>, mirror: &'c mut Mirror) -> Self {
        Self { mirror: Some(mirror), ..Self::new(db, chain) }
    }

    fn known(&mut self) -> Option<&mut Known> {
        self.mirror.as_mut()?.known.as_mut()
    }

    /// A worker, if it is known; else there may be none.
    pub(super) fn known_worker(&mut self, id: &WorkerId) -> Option<StoredWorker> {
        self.known()?.workers.get(id).map(|stored| StoredWorker::clone(stored))
    }

    /// A job that lives, if it is known; one that is not may have ended.
    pub(super) fn known_job(&mut self, id: &JobId) -> Option<Job> {
        self.known()?.jobs.get(id).map(|job| Job::clone(job))
    }

    /// The jobs that hold a lease, of one worker or of all, in the order of their submits.
    pub(super) fn known_leases(&mut self, worker: Option<&WorkerId>) -> Option<Vec<Job>> {
        let holds =
            |job: &&Arc<Job>| job.live_lease().is_some_and(|lease| worker.is_none_or(|worker| lease.worker == *worker));
        let mut leased: Vec<Job> = self.known()?.jobs.values().filter(holds).map(|job| Job::clone(job)).collect();
        leased.sort_by(|a, b| (a.submitted_at, &a.id).cmp(&(b.submitted_at, &b.id)));
        Some(leased)
    }

    /// A worker was written.
    pub(super) fn note_worker(&mut self, worker: &Worker) {
        if let Some(known) = self.known() {
            let last_seen = known.workers.get(&worker.id).and_then(|stored| stored.last_seen);
            known.workers.insert(worker.id.clone(), Arc::new(StoredWorker { worker: worker.clone(), last_seen }));
        }
    }

    /// A worker was heard of.
    pub(super) fn note_seen(&mut self, id: &WorkerId, at: Timestamp) {
        if let Some(stored) = self.known().and_then(|known| known.workers.get_mut(id)) {
            let last_seen = stored.last_seen.max(Some(at));
            Arc::make_mut(stored).last_seen = last_seen;
        }
    }

    /// A worker was removed.
    pub(super) fn note_removed(&mut self, id: &WorkerId) {
        if let Some(known) = self.known() {
            known.workers.remove(id);
        }
    }

    /// A job was written.
    pub(super) fn note_job(&mut self, job: &Job) {
        if let Some(known) = self.known() {
            if job.has_ended() {
                known.jobs.remove(&job.id);
            } else {
                known.jobs.insert(job.id.clone(), Arc::new(job.clone()));
            }
        }
    }

    async fn load(&mut self) -> Result<Known> {
        let workers = whole_workers(&self.all(sql("SELECT * FROM workers")).await?);
        let living =
            sql("SELECT * FROM jobs WHERE state IN ('queued', 'offered', 'starting', 'running', 'cancelling')");
        let jobs = whole_jobs(&self.all(living).await?);
        Ok(Known {
            workers: workers.into_iter().map(|stored| (stored.worker.id.clone(), Arc::new(stored))).collect(),
            jobs: jobs.into_iter().map(|job| (job.id.clone(), Arc::new(job))).collect(),
        })
    }
}

impl Known {
    fn shared(&self) -> Live {
        Live { workers: self.workers.values().cloned().collect(), jobs: self.jobs.values().cloned().collect() }
    }
}

#[async_trait]
impl Planning for Session<'_> {
    async fn live(&mut self) -> Result<Live> {
        if let Some(known) = self.known() {
            return Ok(known.shared());
        }
        let known = self.load().await?;
        let live = known.shared();
        if let Some(mirror) = &mut self.mirror {
            mirror.known = Some(known);
        }
        Ok(live)
    }
}
