//! GPU history ([`crate::history`]): collects telemetry of agents, returns charts, and survives restarts in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::protocol::gpu::GpuTelemetry;
use app::protocol::gpus::history::{FleetHistory, GpuHistory, GpuSeries, HistoryRange};
use app::threads::run_io;

use crate::files::atomic_write;
use crate::history::{COARSE, FINE, GpuSample, GpuTrack, History, HistoryCell, MAX_FILE_BYTES, Resolution};
use crate::service::error::ServiceError;
use crate::service::gpus::GpuService;
use crate::service::gpus::checked_reading;

/// The file's name in the data directory.
const FILE_NAME: &str = "gpu-history";
/// The number of points in a sparkline.
const SPARKLINE_PARTS: i64 = 48;

#[derive(Default)]
pub struct GpuHistoryStore {
    history: Mutex<History>,
    file: Option<PathBuf>,
}

impl GpuHistoryStore {
    /// Loads the file of the data directory.
    pub fn open(data: &Path) -> Self {
        let histories = Self { file: Some(data.join(FILE_NAME)), ..Self::default() };
        if let Err(error) = histories.load() {
            tracing::warn!(%error, "GPU history: failed to load the history before this start");
        }
        histories
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no panic while it is held")
    }

    #[cfg(test)]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.lock().to_bytes()
    }

    /// Merges the file, if it exists, into memory.
    fn load(&self) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            result => result?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let corrupt = |_| io::Error::new(ErrorKind::InvalidData, format!("{} is corrupt", path.display()));
        let loaded = History::from_bytes(&bytes).map_err(corrupt)?;
        self.lock().merge(loaded);
        Ok(())
    }

    /// Writes the history to the file, merged with what other servers that share the data directory have written. Each
    /// of them thus knows all telemetry, a few minutes late.
    fn merge_and_save(&self, now: Timestamp) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        // A damaged file is replaced.
        match self.load() {
            Err(error) if error.kind() != ErrorKind::InvalidData => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let bytes = {
            let mut history = self.lock();
            history.prune(now);
            history.to_bytes()
        };
        atomic_write::replace(path, 0o600, &bytes)
    }
}

impl GpuService {
    /// Records telemetry of a worker that held these jobs.
    pub(in crate::service) fn record_telemetry(&self, worker: &Worker, telemetry: &[GpuTelemetry], held: &[Job]) {
        let Some(capability) = worker.capability() else { return };
        let now = self.context.now();
        let holds = |uuid: &str| {
            held.iter().any(|job| job.active_lease().is_some_and(|lease| lease.gpu_uuids().contains(&uuid)))
        };
        let gpu_samples = |sample: &'_ GpuTelemetry| -> Vec<_> {
            let gpu_sample = |gpu: &'_ app::protocol::gpu::GpuReading| {
                let reading = checked_reading(gpu, now);
                GpuSample {
                    utilization: reading.utilization_percent,
                    memory: reading.memory_used_gb,
                    temperature: reading.temperature_celsius,
                    power: reading.power_watts,
                    held: holds(&gpu.uuid),
                }
            };
            sample.gpus.iter().map(|gpu| (gpu.uuid.clone(), gpu_sample(gpu))).collect()
        };
        let samples: Vec<_> = telemetry.iter().map(|sample| (sample.at, gpu_samples(sample))).collect();
        self.history.lock().record(&worker.id, &capability.gpus, &samples, now);
    }

    /// The history of a worker's GPUs.
    pub async fn worker_history(&self, id: &WorkerId, range: HistoryRange) -> Result<GpuHistory, ServiceError> {
        self.context.read().await?.worker(id).await?.ok_or_else(|| ServiceError::WorkerNotFound(id.clone()))?;
        let window = CellWindow::ending_at(self.context.now(), resolution(range));
        Ok(window.history_of(self.history.lock().worker_tracks(id).iter()))
    }

    /// The history of a job's GPUs during its newest attempt. The GPUs of earlier attempts are not stored.
    pub async fn job_history(&self, id: &JobId) -> Result<GpuHistory, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let attempt = tx.attempts(id).await?.into_iter().find(|stored| stored.attempt == job.attempt);
        drop(tx);
        let now = self.context.now();
        let Some((lease, attempt)) = job.last_lease().zip(attempt) else { return Ok(GpuHistory::default()) };
        let Some(started_at) = attempt.started_at else { return Ok(GpuHistory::default()) };
        let ended_at = attempt.ended_at.unwrap_or(now).min(now);
        let is_recent = FINE.cell_index(started_at) > FINE.cell_index(now) - cell_count(FINE.cells);
        let resolution = if is_recent { FINE } else { COARSE };
        let retained = CellWindow::ending_at(now, resolution);
        let window = CellWindow {
            resolution,
            first: resolution.cell_index(started_at).max(retained.first),
            last: resolution.cell_index(ended_at).min(retained.last),
        };
        let was_allocated = |track: &&GpuTrack| lease.gpus.contains(&track.uuid);
        Ok(window.history_of(self.history.lock().worker_tracks(&lease.worker).iter().filter(was_allocated)))
    }

    /// The sum of all GPUs.
    pub fn fleet_history(&self, range: HistoryRange) -> FleetHistory {
        self.readings.mark_all_viewed(self.context.now());
        let window = CellWindow::ending_at(self.context.now(), resolution(range));
        let length = usize::try_from(window.last - window.first + 1).unwrap_or_default();
        let mut sums = vec![(0.0, 0_u32, 0_u32, 0_u32); length];
        for track in self.history.lock().all_tracks() {
            for (sum, cell) in sums.iter_mut().zip(window.cells(track)).filter(|(_, cell)| cell.has_data()) {
                let utilization = cell.utilization();
                sum.0 += utilization.unwrap_or_default();
                sum.1 += u32::from(utilization.is_some());
                sum.2 += 1;
                sum.3 += u32::from(cell.is_held());
            }
        }
        let if_reported = |count: u32, gpus: u32| (gpus > 0).then_some(count);
        FleetHistory {
            from: window.start(),
            step_seconds: window.step_seconds(),
            utilization_percent: sums.iter().map(|sum| (sum.1 > 0).then(|| tenths(sum.0 / f64::from(sum.1)))).collect(),
            gpus: sums.iter().map(|sum| if_reported(sum.2, sum.2)).collect(),
            busy: sums.iter().map(|sum| if_reported(sum.3, sum.2)).collect(),
        }
    }

    /// The load of a worker's GPUs by id, as sparklines.
    pub(in crate::service) fn sparklines(
        &self,
        worker: &WorkerId,
        range: HistoryRange,
    ) -> BTreeMap<String, Vec<Option<u8>>> {
        let window = CellWindow::ending_at(self.context.now(), resolution(range));
        let length = (window.last - window.first + 1) / SPARKLINE_PARTS;
        let mean_load = |track: &GpuTrack, part: i64| {
            let cells =
                (0..length).map(|index| track.ring(window.resolution).cell(window.first + part * length + index));
            let (sum, number) =
                cells.filter_map(HistoryCell::utilization).fold((0.0, 0_u32), |(sum, n), used| (sum + used, n + 1));
            (number > 0).then(|| percent(sum / f64::from(number)))
        };
        let history = self.history.lock();
        history
            .worker_tracks(worker)
            .iter()
            .map(|track| (track.uuid.clone(), (0..SPARKLINE_PARTS).map(|n| mean_load(track, n)).collect()))
            .collect()
    }

    /// Saves the history for the next start.
    pub async fn save_gpu_history(self: &Arc<Self>) -> Result<(), ServiceError> {
        let gpus = Arc::clone(self);
        run_io(move || gpus.history.merge_and_save(gpus.context.now()))
            .await
            .map_err(|error| ServiceError::FilesUnavailable(error.to_string()))
    }
}

const fn resolution(range: HistoryRange) -> Resolution {
    match range {
        HistoryRange::Hour => FINE,
        HistoryRange::Day => COARSE,
    }
}

fn cell_count(cells: usize) -> i64 {
    i64::try_from(cells).unwrap_or(i64::MAX)
}

/// A range of cells.
struct CellWindow {
    resolution: Resolution,
    first: i64,
    last: i64,
}

impl CellWindow {
    /// The longest stored range.
    fn ending_at(now: Timestamp, resolution: Resolution) -> Self {
        let last = resolution.cell_index(now);
        Self { resolution, first: last - cell_count(resolution.cells) + 1, last }
    }

    fn start(&self) -> Timestamp {
        self.resolution.cell_start(self.first)
    }

    fn step_seconds(&self) -> u32 {
        u32::try_from(self.resolution.step.0 / 1_000).unwrap_or(u32::MAX)
    }

    fn cells<'t>(&self, track: &'t GpuTrack) -> impl Iterator<Item = HistoryCell> + use<'t> {
        let ring = track.ring(self.resolution);
        (self.first..=self.last).map(|index| ring.cell(index))
    }

    fn history_of<'t>(&self, tracks: impl Iterator<Item = &'t GpuTrack>) -> GpuHistory {
        let series = |track: &GpuTrack| {
            let column = |value: fn(HistoryCell) -> Option<f64>| {
                let values: Vec<_> = self.cells(track).map(|cell| value(cell).map(tenths)).collect();
                if values.iter().all(Option::is_none) { Vec::new() } else { values }
            };
            GpuSeries {
                uuid: track.uuid.clone(),
                index: track.index,
                name: track.name.clone(),
                vram_gb: track.vram_gb,
                utilization_percent: column(HistoryCell::utilization),
                utilization_peak_percent: column(HistoryCell::peak_utilization),
                memory_used_gb: column(HistoryCell::memory),
                temperature_celsius: column(HistoryCell::temperature),
                temperature_peak_celsius: column(HistoryCell::max_temperature),
                power_watts: column(HistoryCell::power),
            }
        };
        GpuHistory { from: self.start(), step_seconds: self.step_seconds(), gpus: tracks.map(series).collect() }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and clamped")]
fn percent(value: f64) -> u8 {
    value.round().clamp(0.0, 100.0) as u8
}
