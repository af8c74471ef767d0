//! Commands of users, as `src/server/service/workers` and `src/server/service/jobs`.

use app::domain::liveness::offline_at;
use app::domain::worker::OfflineCause;
use app::domain::worker::credential::WorkerCredential;

use crate::config::Mutation;
use crate::rows::{JobRow, JobRowState, job_id, submitted};
use crate::service::Service;
use crate::ticks::{NOW, TIMEOUT, duration, timestamp};
use crate::workers::{CredentialRow, Session, token_digest};

impl Service<'_> {
    /// Submits a job; it is acknowledged when it is stored.
    pub fn submit(&mut self, n: usize) {
        if self.is_mutated(Mutation::AcknowledgedBeforeCommit) {
            self.me().uncommitted = u8::try_from(n).ok();
        } else {
            self.commit_submit(n);
        }
        self.world.acknowledged |= 1 << n;
    }

    /// Stores a submitted job, and plans.
    pub fn commit_submit(&mut self, n: usize) {
        self.save_job(n, &submitted(n, &self.protocol.config.jobs[n]));
        self.plan();
    }

    /// Retries a job that has ended (`Job::retried`, `inherit_fencing_delay`).
    pub fn retry(&mut self, n: usize, retried: usize) {
        let ended = self.job(retried).expect("it has ended");
        let mut retry = ended.retried(job_id(n), NOW, "u".to_owned(), 50).expect("it has ended");
        if self.is_mutated(Mutation::RetryIgnoresFencingDelay) {
            retry.hold_until = None;
        }
        self.save_job(n, &retry);
        self.world.acknowledged |= 1 << n;
        self.plan();
    }

    /// Cancels a job. Returns whether that was possible.
    pub fn cancel(&mut self, n: usize) -> bool {
        let Some(job) = self.job(n) else { return false };
        if self.is_mutated(Mutation::EndedJobCancelled) && job.has_ended() {
            let row = JobRow::from_job(&job);
            self.world.database.jobs[n] = Some(JobRow { state: JobRowState::Cancelled(None), ..row });
            return true;
        }
        match job.clone().cancelled(NOW) {
            Ok(after) if after != job => {
                self.save_job(n, &after);
                self.plan();
                true
            }
            _ => false,
        }
    }

    /// `disconnect` in `agents/mod.rs`: what the agent leaves running stays assigned to it.
    pub fn disconnect(&mut self, n: usize, host: usize) {
        let is_valid = self.world.hosts[host].agent.as_ref().and_then(|agent| agent.session) == Some(Session::Newest);
        if let Some(worker) = self.worker(n).filter(|_| is_valid) {
            self.me().contacts |= 1 << n;
            self.save_worker(n, &worker.went_offline(NOW, OfflineCause::Disconnected));
            self.withdraw_offers(n);
            self.plan();
        }
    }

    /// `drain_in` in `workers/mod.rs`.
    pub fn drain(&mut self, n: usize, has_deadline: bool) {
        let worker = self.worker(n).expect("it exists");
        let after = worker.drained(NOW, None, has_deadline.then_some(timestamp(1)));
        self.save_worker(n, &after);
        self.withdraw_offers(n);
        self.plan();
    }

    /// Ends a drain.
    pub fn resume(&mut self, n: usize) {
        let worker = self.worker(n).expect("it exists");
        self.save_worker(n, &worker.resumed());
        self.plan();
    }

    /// `rotate_token` in `workers/tokens.rs`.
    pub fn rotate(&mut self, n: usize, overlaps: bool) {
        let row = self.world.database.workers[n].expect("it exists");
        let token = row.credential.token + 1;
        let overlap = overlaps.then_some(duration(1));
        let before = row.credential.to_credential();
        let credential = before.rotated(NOW, WorkerCredential::new(token_digest(token)), overlap);
        self.world.database.workers[n].as_mut().expect("it exists").credential =
            CredentialRow::from_credential(&credential);
        if overlaps {
            return;
        }
        self.world.revoked.push((u8::try_from(n).expect("few workers"), row.credential.token));
        // Otherwise its attempts continue with their own tokens (`evict_agent`).
        if self.held(n).is_empty() {
            let worker = self.worker(n).expect("it exists");
            self.save_worker(n, &worker.went_offline(NOW, OfflineCause::TokenRotated));
        }
    }

    /// `delete_worker` in `workers/mod.rs`. Returns whether that was possible.
    pub fn delete(&mut self, n: usize) -> bool {
        let Some(row) = self.world.database.workers[n] else { return false };
        let worker = self.worker(n).expect("it has a row");
        let Some(serving_since) = self.serving_since() else { return false };
        let offline_at = offline_at(&worker, row.seen.map(timestamp), serving_since, duration(TIMEOUT));
        if worker.check_deletion(&self.held(n), offline_at).is_err() {
            return false;
        }
        self.lose_leases(n);
        self.world.database.workers[n] = None;
        for token in 0..=row.credential.token {
            self.world.revoked.push((u8::try_from(n).expect("few workers"), token));
        }
        self.world.revoked.sort_unstable();
        self.world.revoked.dedup();
        true
    }
}
