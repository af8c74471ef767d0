//! The thread that polls the GPUs, and the state that it publishes.
//!
//! A driver may hang for seconds or forever. Only this thread then waits: no lock is held during a call to a driver, so
//! heartbeats continue, and report that the state is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use app::domain::time::Timestamp;
use app::protocol::gpu::{Gpu, GpuReading, GpuTelemetry, Unavailable};
use app::threads;
use tokio::sync::{Notify, oneshot};

use super::health::{GpuFailure, GpuHealth, GpuPoll, mark_missing_as_lost};
use super::provider::{self, GpuProcess, GpuProvider};
use super::quarantine::Quarantine;
use super::telemetry::{TelemetryBatch, TelemetryBuffer};
use super::{Hardware, apply_restrictions, hardware_cache, is_placeholder, late_gpus};
use crate::worker::config::AgentConfig;
use crate::worker::{clock, process};

const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A poll that takes longer is considered hung.
const POLL_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of the first poll, after which the agent continues without GPUs.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);
/// How often GPUs that existed before are searched.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Enough for the drivers' libraries.
const STACK_BYTES: usize = 512 * 1024;

/// The state of this host's GPUs.
#[derive(Debug, Clone)]
pub struct GpuMonitor {
    shared: Arc<MonitorShared>,
    poll_requests: Sender<oneshot::Sender<GpuPoll>>,
}

/// Shared state. The two locks are never held together.
#[derive(Debug)]
struct MonitorShared {
    /// The GPUs that a driver reports, without those from flags.
    known_uuids: Vec<String>,
    state: Mutex<MonitorState>,
    /// Held during disk I/O, so never taken by the agent's loop.
    quarantine: Mutex<Quarantine>,
    /// Notified when unavailable GPUs change.
    changed: Notify,
    /// Notified when there are GPUs that did not exist at the start.
    gpus_added: Notify,
}

#[derive(Debug)]
struct MonitorState {
    health: GpuHealth,
    quarantined: BTreeMap<String, String>,
    telemetry: TelemetryBuffer,
    /// How many attempts have reserved each GPU.
    reservations: BTreeMap<String, usize>,
    /// From the last poll.
    readings: BTreeMap<String, GpuReading>,
    unavailable: BTreeMap<String, Unavailable>,
    last_poll: Instant,
    is_unresponsive: bool,
}

impl GpuMonitor {
    /// Detects the hardware, in the thread that keeps polling. If a driver does not respond, the last known hardware is
    /// returned, and no job gets it until the driver responds.
    pub async fn start(config: &AgentConfig) -> (Hardware, Self) {
        let (sender, requests) = channel();
        let (done_sender, done) = oneshot::channel();
        let result: Arc<OnceLock<(Hardware, Arc<MonitorShared>)>> = Arc::default();
        let (thread_result, thread_config) = (Arc::clone(&result), config.clone());
        let work = move || {
            let (mut provider, mut hardware) = provider::detect_provider();
            // A driver that is not loaded yet, or is being replaced, reports no GPUs.
            while hardware.gpus.is_empty() && hardware_cache::has_cached_gpus(&thread_config) {
                std::thread::sleep(RETRY_INTERVAL);
                (provider, hardware) = provider::detect_provider();
            }
            let hardware = apply_restrictions(hardware, &thread_config.gpu, &thread_config.hostname);
            let (hardware, shared) = thread_result.get_or_init(|| {
                hardware_cache::save(&thread_config.work_dir, &hardware);
                MonitorShared::new(hardware, &thread_config)
            });
            // The receiver was dropped if detection took too long.
            let _ = done_sender.send(());
            if !shared.known_uuids.is_empty() {
                run(provider, shared, &requests);
            } else if late_gpus::may_appear_later(hardware, &thread_config) {
                late_gpus::wait_for_gpus(&thread_config, &requests, || shared.gpus_added.notify_one());
            }
        };
        match std::thread::Builder::new().name("gpus".to_owned()).stack_size(STACK_BYTES).spawn(work) {
            Ok(_) => drop(tokio::time::timeout(STARTUP_TIMEOUT, done).await),
            Err(error) => tracing::error!("cannot start the GPU monitor: {error}"),
        }
        let (hardware, shared) = result.get_or_init(|| {
            let (hardware, shared) = MonitorShared::new(hardware_cache::load(&config.work_dir), config);
            let count = hardware.gpus.len();
            tracing::error!("the GPU driver does not respond; the {count} known GPU(s) are unavailable until it does");
            shared.mark_unresponsive(&mut shared.state(), STARTUP_TIMEOUT);
            (hardware, shared)
        });
        (hardware.clone(), Self { shared: Arc::clone(shared), poll_requests: sender })
    }

    /// A monitor of GPUs that no driver is asked about.
    #[cfg(feature = "simulation")]
    pub fn unpolled(hardware: Hardware, config: &AgentConfig) -> Self {
        Self { shared: MonitorShared::new(hardware, config).1, poll_requests: channel().0 }
    }

    /// The GPUs with their current availability.
    pub fn with_availability(&self, gpus: &[Gpu]) -> Vec<Gpu> {
        let state = self.shared.state();
        let with_reason = |gpu: &Gpu| Gpu { unavailable: state.unavailable.get(&gpu.uuid).cloned(), ..gpu.clone() };
        gpus.iter().map(with_reason).collect()
    }

    /// What the next heartbeat reports. The first call after a driver stopped responding includes that.
    pub fn telemetry(&self) -> TelemetryBatch {
        let mut state = self.shared.state();
        if !self.shared.known_uuids.is_empty() && !state.is_unresponsive && state.last_poll.elapsed() > POLL_TIMEOUT {
            self.shared.mark_unresponsive(&mut state, POLL_TIMEOUT);
        }
        state.telemetry.batch()
    }

    /// Records that the orchestrator has this batch.
    pub fn acknowledge(&self, batch: &TelemetryBatch) {
        self.shared.state().telemetry.acknowledge(batch);
    }

    /// Waits until unavailable GPUs have changed since the last call.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Waits until there are GPUs that did not exist at the start.
    pub(super) async fn gpus_added(&self) {
        self.shared.gpus_added.notified().await;
    }

    /// Reserves GPUs for an attempt until the result is dropped; without a grant, all GPUs.
    pub fn reserve(&self, granted: &[String]) -> GpuReservation {
        let uuids = if granted.is_empty() { self.shared.known_uuids.clone() } else { granted.to_vec() };
        let mut state = self.shared.state();
        for uuid in &uuids {
            *state.reservations.entry(uuid.clone()).or_default() += 1;
        }
        GpuReservation { shared: Arc::clone(&self.shared), uuids }
    }

    /// Those of these that a driver knows.
    pub(super) fn known_uuids(&self, granted: &[String]) -> Vec<String> {
        granted.iter().filter(|uuid| self.shared.known_uuids.contains(uuid)).cloned().collect()
    }

    /// Polls now. `None` if no thread is polling.
    pub(super) async fn poll_now(&self) -> Option<GpuPoll> {
        let (sender, receiver) = oneshot::channel();
        self.poll_requests.send(sender).ok()?;
        receiver.await.ok()
    }

    /// Why a GPU is in quarantine.
    pub(super) fn quarantine_reason(&self, uuid: &str) -> Option<String> {
        self.shared.state().quarantined.get(uuid).cloned()
    }

    /// Quarantines GPUs until a user or a reboot releases them.
    pub(super) async fn quarantine(&self, failures: Vec<GpuFailure>) {
        let shared = Arc::clone(&self.shared);
        let write = move || shared.sync_quarantine(&failures, clock::now(), false);
        if let Err(error) = threads::run_blocking(write).await {
            tracing::error!("cannot record a quarantine: {error}");
        }
    }

    /// Reports a GPU as in use while these processes use it.
    pub(super) fn record_foreign_use(&self, uuid: &str, processes: &[GpuProcess]) {
        let mut state = self.shared.state();
        state.health.record_foreign_use(uuid, processes);
        self.shared.refresh_unavailable(&mut state, clock::now(), false);
    }
}

/// The GPUs of an attempt.
#[derive(Debug)]
pub struct GpuReservation {
    shared: Arc<MonitorShared>,
    uuids: Vec<String>,
}

impl Drop for GpuReservation {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for uuid in &self.uuids {
            if let Some(count) = state.reservations.get_mut(uuid) {
                *count -= 1;
            }
        }
        state.reservations.retain(|_, count| *count > 0);
    }
}

impl MonitorShared {
    /// Before the first poll.
    fn new(hardware: Hardware, config: &AgentConfig) -> (Hardware, Arc<Self>) {
        let quarantine = Quarantine::open(&config.work_dir, process::host_boot_id());
        let known_uuids =
            hardware.gpus.iter().map(|gpu| gpu.uuid.clone()).filter(|uuid| !is_placeholder(uuid)).collect();
        let state = MonitorState {
            health: GpuHealth::default(),
            quarantined: BTreeMap::new(),
            telemetry: TelemetryBuffer::default(),
            reservations: BTreeMap::new(),
            readings: BTreeMap::new(),
            unavailable: BTreeMap::new(),
            last_poll: Instant::now(),
            is_unresponsive: false,
        };
        let (state, quarantine) = (Mutex::new(state), Mutex::new(quarantine));
        let shared = Self { known_uuids, state, quarantine, changed: Notify::new(), gpus_added: Notify::new() };
        // The first registration must report what an earlier agent knew.
        shared.sync_quarantine(&[], clock::now(), false);
        (hardware, Arc::new(shared))
    }

    fn state(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserved_uuids(&self) -> BTreeSet<String> {
        self.state().reservations.keys().cloned().collect()
    }

    /// Records a poll during which the GPUs `reserved` were reserved.
    fn record(&self, poll: &GpuPoll, mut reserved: BTreeSet<String>, now: Timestamp, is_periodic: bool) {
        let failures = {
            let mut state = self.state();
            // An attempt that started during the poll may already use its GPUs.
            reserved.extend(state.reservations.keys().cloned());
            if state.is_unresponsive {
                tracing::info!("the GPU driver responds again");
            }
            state.is_unresponsive = false;
            state.last_poll = Instant::now();
            let readings =
                poll.iter().flatten().map(|snapshot| (snapshot.reading.uuid.clone(), snapshot.reading.clone()));
            state.readings = readings.collect();
            state.health.record(poll, &reserved)
        };
        self.sync_quarantine(&failures, now, is_periodic);
    }

    /// Records that no poll has finished for this long: the state of all GPUs is unknown.
    fn mark_unresponsive(&self, state: &mut MonitorState, silence: Duration) {
        let detail = format!("the driver has not responded for {} s", silence.as_secs());
        tracing::error!("{detail}; the GPUs are unavailable until it does");
        state.is_unresponsive = true;
        state.health.mark_unresponsive(&detail);
        state.readings.clear();
        self.refresh_unavailable(state, clock::now(), false);
    }

    /// Saves failures, and reads which GPUs a user has released.
    fn sync_quarantine(&self, failures: &[GpuFailure], now: Timestamp, is_periodic: bool) {
        let quarantined = {
            let mut quarantine = self.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
            for failure in failures {
                if let Err(error) = quarantine.add(failure, now) {
                    tracing::error!("cannot record the quarantine of {}: {error}", failure.uuid);
                }
            }
            quarantine.entries().iter().map(|(uuid, entry)| (uuid.clone(), entry.reason.clone())).collect()
        };
        let mut state = self.state();
        state.quarantined = quarantined;
        self.refresh_unavailable(&mut state, now, is_periodic);
    }

    /// Updates which GPUs are unavailable, and notifies about changes.
    fn refresh_unavailable(&self, state: &mut MonitorState, now: Timestamp, is_periodic: bool) {
        let unavailable: BTreeMap<String, Unavailable> = self
            .known_uuids
            .iter()
            .filter_map(|uuid| {
                let quarantined = state.quarantined.get(uuid).map(String::as_str);
                Some((uuid.clone(), state.health.unavailable_reason(uuid, quarantined)?))
            })
            .collect();
        let changed = unavailable != state.unavailable;
        state.unavailable = unavailable;
        if is_periodic || changed {
            let reading = |uuid: &String| GpuReading {
                uuid: uuid.clone(),
                unavailable: state.unavailable.get(uuid).cloned(),
                ..state.readings.get(uuid).cloned().unwrap_or_default()
            };
            let gpus = self.known_uuids.iter().map(reading).collect();
            state.telemetry.push(GpuTelemetry { at: now, gpus });
        }
        if changed {
            self.changed.notify_one();
        }
    }
}

/// Polls immediately, then periodically and on request, until all senders are dropped.
fn run(mut provider: Box<dyn GpuProvider>, shared: &MonitorShared, requests: &Receiver<oneshot::Sender<GpuPoll>>) {
    let mut next = Instant::now();
    loop {
        let request = match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(request) => Some(request),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let reserved = shared.reserved_uuids();
        let poll = mark_missing_as_lost(provider.poll(), &shared.known_uuids);
        shared.record(&poll, reserved, clock::now(), request.is_none());
        match request {
            // The receiver may have been dropped.
            Some(request) => drop(request.send(poll)),
            None => next = Instant::now() + POLL_INTERVAL,
        }
    }
}
