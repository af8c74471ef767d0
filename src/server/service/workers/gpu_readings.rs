//! The newest readings of workers' GPUs. They are kept in memory, and cost no commit.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::protocol::gpu::GpuReadingView;
use app::protocol::topic::Topic;

/// The minimum interval between notifications of new readings to viewers of a worker.
const NOTIFY_INTERVAL: Millis = Millis::from_secs(5);
/// The minimum interval between writes of a changed reason only.
const DETAIL_INTERVAL: Millis = Millis::from_secs(60);
/// How long a request for a worker makes the client a viewer. Agents send readings every 30 s at most.
const VIEWER_TTL: Millis = Millis::from_secs(90);

/// The newest readings of the workers whose agents use this server, and their viewers.
#[derive(Default)]
pub struct GpuReadings(Mutex<ReadingsState>);

#[derive(Default)]
struct ReadingsState {
    workers: HashMap<WorkerId, WorkerReadings>,
    /// Viewers of all workers.
    all_viewers: Viewers,
}

#[derive(Default)]
struct WorkerReadings {
    readings: Vec<(String, GpuReadingView)>,
    viewers: Viewers,
    detail_updated_at: Timestamp,
}

/// Whether there are viewers, and when they were last notified.
#[derive(Default)]
struct Viewers {
    last_viewed_at: Timestamp,
    notified_at: Timestamp,
}

impl Viewers {
    /// Returns whether to notify now.
    fn should_notify(&mut self, now: Timestamp) -> bool {
        let is_due = now - self.last_viewed_at <= VIEWER_TTL && now - self.notified_at >= NOTIFY_INTERVAL;
        if is_due {
            self.notified_at = now;
        }
        is_due
    }
}

impl GpuReadings {
    fn lock(&self) -> std::sync::MutexGuard<'_, ReadingsState> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Replaces the readings of a worker; returns the topics to notify.
    pub(in crate::service) fn record(
        &self,
        worker: &WorkerId,
        readings: Vec<(String, GpuReadingView)>,
        now: Timestamp,
    ) -> Vec<Topic> {
        let mut state = self.lock();
        let all_topic = state.all_viewers.should_notify(now).then_some(Topic::Gpus);
        let entry = state.workers.entry(worker.clone()).or_default();
        entry.readings = readings;
        let worker_topic = entry.viewers.should_notify(now).then(|| Topic::Worker(worker.clone()));
        worker_topic.into_iter().chain(all_topic).collect()
    }

    /// Returns the newest reading of each GPU of a worker, by id, and marks the worker as viewed.
    pub fn view_worker(&self, worker: &WorkerId, now: Timestamp) -> HashMap<String, GpuReadingView> {
        let mut state = self.lock();
        let entry = state.workers.entry(worker.clone()).or_default();
        entry.viewers.last_viewed_at = now;
        entry.readings.iter().cloned().collect()
    }

    pub(in crate::service) fn mark_all_viewed(&self, now: Timestamp) {
        self.lock().all_viewers.last_viewed_at = now;
    }

    /// Returns the readings of a worker for a list of all; marks all as viewed.
    pub fn view_in_list(&self, worker: &WorkerId, now: Timestamp) -> HashMap<String, GpuReadingView> {
        let mut state = self.lock();
        state.all_viewers.last_viewed_at = now;
        state.workers.get(worker).map(|entry| entry.readings.iter().cloned().collect()).unwrap_or_default()
    }

    /// The number of the worker's GPUs that report their utilization.
    pub(in crate::service) fn measured_count(&self, worker: &WorkerId) -> u64 {
        let state = self.lock();
        let readings = state.workers.get(worker).map_or(&[][..], |entry| &entry.readings);
        readings.iter().filter(|(_, reading)| reading.utilization_percent.is_some()).count() as u64
    }

    /// Returns whether a changed reason why a GPU is unavailable is to be written now.
    pub(in crate::service) fn may_update_detail(&self, worker: &WorkerId, now: Timestamp) -> bool {
        let mut state = self.lock();
        let entry = state.workers.entry(worker.clone()).or_default();
        let is_allowed = now - entry.detail_updated_at >= DETAIL_INTERVAL;
        if is_allowed {
            entry.detail_updated_at = now;
        }
        is_allowed
    }

    /// Forgets the workers that are not among these.
    pub fn retain(&self, existing: &HashSet<WorkerId>) {
        self.lock().workers.retain(|worker, _| existing.contains(worker));
    }

    /// The number of workers with readings.
    #[cfg(test)]
    pub fn worker_count(&self) -> usize {
        self.lock().workers.len()
    }

    pub fn forget(&self, worker: &WorkerId) {
        self.lock().workers.remove(worker);
    }
}
