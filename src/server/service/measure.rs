//! What is told of the fleet at the moment it is asked, from memory, and what the writer is counted by.

use std::collections::BTreeMap;

use app::domain::audit::verify::Head;
use app::domain::job::State;
use app::domain::time::Millis;
use app::protocol::status::{GpuState, JobStatus, WorkerStatus};

use super::Core;
use super::presence::last_seen;
use super::refusal::Refusal;
use super::views;
use crate::store::group::Ended;
use crate::store::known::Known;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measured {
    /// How many workers there are in each state.
    pub workers: BTreeMap<WorkerStatus, u64>,
    /// How many GPUs of connected workers there are in each state; one that is withheld counts as that, whoever has it.
    pub gpus: BTreeMap<GpuState, u64>,
    /// How many jobs there are in each state that is not an end.
    pub jobs: BTreeMap<JobStatus, u64>,
    /// How long the one has waited that was submitted first of those that wait; zero if none does.
    pub oldest_waits: Millis,
    /// Workers whose agent does not verify this server's certificate.
    pub unverified: u64,
    /// How long the one was not heard of that was silent for longest, of those that are connected.
    pub longest_silence: Millis,
    /// Entries of the audit trail.
    pub audit_entries: u64,
}

impl Core {
    /// How the writing of a group ended.
    pub fn count(&self, ended: Ended) {
        match ended {
            Ended::Committed { took, members, wrote } => {
                let now = self.now();
                self.metrics.commits.committed(took, members, wrote, now);
                self.metrics.dispatch.committed(now);
            }
            Ended::Undone => {
                self.metrics.commits.undone.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.metrics.dispatch.undone();
            }
        }
    }

    /// Measures the fleet.
    pub async fn measured(&self) -> Result<Measured, Refusal> {
        let mut tx = self.recent().await?;
        let measured = tx.see(|known| self.measure(known)).await?;
        let heads = tx.audit_heads().await?;
        let length = |head: &Head| (head.newest.seq - head.removed.seq).max(0).unsigned_abs();
        Ok(Measured { audit_entries: heads.values().map(length).sum(), ..measured })
    }

    fn measure(&self, known: &Known) -> Measured {
        let now = self.now();
        let mut measured = Measured::default();
        measured.workers.extend(WorkerStatus::ALL.iter().map(|status| (*status, 0)));
        let connected = |state: &&GpuState| **state != GpuState::NotConnected;
        measured.gpus.extend(GpuState::ALL.iter().filter(connected).map(|state| (*state, 0)));
        let lives = JobStatus::ALL.iter().filter(|status| !status.is_terminal());
        measured.jobs.extend(lives.map(|status| (*status, 0)));
        for stored in known.workers() {
            let worker = &stored.worker;
            let status = views::workers::status(worker.status(known.leases_of(&worker.id)));
            *measured.workers.entry(status).or_default() += 1;
            let unverified = worker.capability().is_some_and(|capability| capability.tls_verify == Some(false));
            measured.unverified += u64::from(unverified && status != WorkerStatus::Offline);
            if worker.may_beat().is_err() {
                continue;
            }
            for (_, state) in views::gpus::states(worker, &known.leased(Some(&worker.id))) {
                *measured.gpus.entry(state).or_default() += 1;
            }
            if let Some(seen) = last_seen(self, stored) {
                measured.longest_silence = measured.longest_silence.max(now - seen);
            }
        }
        for job in known.jobs() {
            *measured.jobs.entry(views::jobs::status(job)).or_default() += 1;
            if matches!(job.state, State::Queued { .. }) {
                measured.oldest_waits = measured.oldest_waits.max(now - job.submitted_at);
            }
        }
        measured
    }
}
