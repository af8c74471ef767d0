//! How GPUs did over time ([`crate::history`]): what agents tell goes in, charts come out, and a file carries it over a
//! restart.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::protocol::gpu::Telemetry;
use app::protocol::history::{FleetHistory, GpuHistory, GpuSeries, Range};

use super::Core;
use super::gpus::reading;
use super::refusal::Refusal;
use crate::files::whole;
use crate::history::{COARSE, Cell, FINE, Grain, History, LARGEST, Sample, Track};

/// Its name in the data directory.
const FILE: &str = "gpu-history";
/// In how many parts a sparkline shows its hour or day.
const PARTS: i64 = 48;

/// See the module.
#[derive(Default)]
pub struct Histories {
    history: Mutex<History>,
    file: Option<PathBuf>,
}

impl Histories {
    /// With what an earlier life left in the data directory.
    pub fn at(data: &Path) -> Self {
        let histories = Self { file: Some(data.join(FILE)), ..Self::default() };
        if let Err(error) = histories.read() {
            tracing::warn!(%error, "how GPUs did before this start is not known");
        }
        histories
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no panic while it is held")
    }

    /// All that is known.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        self.history().to_bytes()
    }

    /// Takes over what the file knows. There may be none.
    fn read(&self) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        let damaged = |_| io::Error::new(ErrorKind::InvalidData, format!("{} is damaged", path.display()));
        let known = History::from_bytes(&bytes).map_err(damaged)?;
        self.history().merge(known);
        Ok(())
    }

    /// Writes it to the file, with what other servers that share the data directory have written there: so each of them
    /// knows what all were told, a few minutes late.
    fn exchange(&self, now: Timestamp) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        // What is damaged there is replaced.
        match self.read() {
            Err(error) if error.kind() != ErrorKind::InvalidData => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let bytes = {
            let mut history = self.history();
            history.prune(now);
            history.to_bytes()
        };
        whole::replace(path, 0o600, &bytes)
    }
}

impl Core {
    /// Keeps what a worker told of its GPUs while it held these jobs.
    pub(super) fn keep_history(&self, worker: &Worker, telemetry: &[Telemetry], held: &[Job]) {
        let Some(capability) = worker.capability() else { return };
        let now = self.now();
        let holds =
            |uuid: &str| held.iter().any(|job| job.live_lease().is_some_and(|lease| lease.held().contains(&uuid)));
        let moment = |moment: &'_ Telemetry| -> Vec<_> {
            let of = |gpu: &'_ app::protocol::gpu::GpuReading| {
                let said = reading(gpu, now);
                Sample {
                    utilization: said.utilization_percent,
                    memory: said.memory_used_gb,
                    temperature: said.temperature_celsius,
                    power: said.power_watts,
                    held: holds(&gpu.uuid),
                }
            };
            moment.gpus.iter().map(|gpu| (gpu.uuid.clone(), of(gpu))).collect()
        };
        let samples: Vec<_> = telemetry.iter().map(|told| (told.at, moment(told))).collect();
        self.histories.history().note(&worker.id, &capability.gpus, &samples, now);
    }

    /// The GPUs of a worker.
    pub async fn worker_history(&self, id: &WorkerId, range: Range) -> Result<GpuHistory, Refusal> {
        self.read().await?.worker(id).await?.ok_or_else(|| Refusal::NoWorker(id.clone()))?;
        let window = Window::until(self.now(), grain(range));
        Ok(window.of(self.histories.history().of(id).iter()))
    }

    /// The GPUs of a job while its newest attempt had them. What it was granted before is not on record.
    pub async fn job_history(&self, id: &JobId) -> Result<GpuHistory, Refusal> {
        let mut tx = self.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let attempt = tx.attempts(id).await?.into_iter().find(|stored| stored.attempt == job.attempt);
        drop(tx);
        let now = self.now();
        let Some((lease, attempt)) = job.last_lease().zip(attempt) else { return Ok(GpuHistory::default()) };
        let Some(began) = attempt.started_at else { return Ok(GpuHistory::default()) };
        let ended = attempt.ended_at.unwrap_or(now).min(now);
        let is_recent = FINE.cell_of(began) > FINE.cell_of(now) - number(FINE.cells);
        let grain = if is_recent { FINE } else { COARSE };
        let kept = Window::until(now, grain);
        let window =
            Window { grain, first: grain.cell_of(began).max(kept.first), last: grain.cell_of(ended).min(kept.last) };
        let granted = |track: &&Track| lease.gpus.contains(&track.uuid);
        Ok(window.of(self.histories.history().of(&lease.worker).iter().filter(granted)))
    }

    /// All GPUs together.
    pub fn fleet_history(&self, range: Range) -> FleetHistory {
        self.readings.all_are_looked_at(self.now());
        let window = Window::until(self.now(), grain(range));
        let length = usize::try_from(window.last - window.first + 1).unwrap_or_default();
        let mut sums = vec![(0.0, 0_u32, 0_u32, 0_u32); length];
        for track in self.histories.history().all() {
            for (sum, cell) in sums.iter_mut().zip(window.cells(track)).filter(|(_, cell)| cell.is_heard()) {
                let used = cell.utilization();
                sum.0 += used.unwrap_or_default();
                sum.1 += u32::from(used.is_some());
                sum.2 += 1;
                sum.3 += u32::from(cell.is_held());
            }
        }
        let heard = |count: u32, gpus: u32| (gpus > 0).then_some(count);
        FleetHistory {
            from: window.from(),
            step_seconds: window.step_seconds(),
            utilization_percent: sums.iter().map(|sum| (sum.1 > 0).then(|| tenths(sum.0 / f64::from(sum.1)))).collect(),
            gpus: sums.iter().map(|sum| heard(sum.2, sum.2)).collect(),
            busy: sums.iter().map(|sum| heard(sum.3, sum.2)).collect(),
        }
    }

    /// How much the GPUs of a worker computed, by their ids, in parts that a sparkline can show.
    pub(super) fn lately(&self, worker: &WorkerId, range: Range) -> BTreeMap<String, Vec<Option<u8>>> {
        let window = Window::until(self.now(), grain(range));
        let length = (window.last - window.first + 1) / PARTS;
        let part = |track: &Track, part: i64| {
            let cells = (0..length).map(|place| track.ring(window.grain).cell(window.first + part * length + place));
            let (sum, number) =
                cells.filter_map(Cell::utilization).fold((0.0, 0_u32), |(sum, n), used| (sum + used, n + 1));
            (number > 0).then(|| percent(sum / f64::from(number)))
        };
        let history = self.histories.history();
        history
            .of(worker)
            .iter()
            .map(|track| (track.uuid.clone(), (0..PARTS).map(|n| part(track, n)).collect()))
            .collect()
    }

    /// Writes what is known, for the next start.
    pub async fn keep_histories(self: &Arc<Self>) -> Result<(), Refusal> {
        let core = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || core.histories.exchange(core.now())).await;
        written.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(|error| Refusal::Files(error.to_string()))
    }
}

const fn grain(range: Range) -> Grain {
    match range {
        Range::Hour => FINE,
        Range::Day => COARSE,
    }
}

fn number(cells: usize) -> i64 {
    i64::try_from(cells).unwrap_or(i64::MAX)
}

/// Cells from a first to a last.
struct Window {
    grain: Grain,
    first: i64,
    last: i64,
}

impl Window {
    /// As many as are kept.
    fn until(now: Timestamp, grain: Grain) -> Self {
        let last = grain.cell_of(now);
        Self { grain, first: last - number(grain.cells) + 1, last }
    }

    fn from(&self) -> Timestamp {
        self.grain.start_of(self.first)
    }

    fn step_seconds(&self) -> u32 {
        u32::try_from(self.grain.step.0 / 1_000).unwrap_or(u32::MAX)
    }

    fn cells<'t>(&self, track: &'t Track) -> impl Iterator<Item = Cell> + use<'t> {
        let ring = track.ring(self.grain);
        (self.first..=self.last).map(|number| ring.cell(number))
    }

    fn of<'t>(&self, tracks: impl Iterator<Item = &'t Track>) -> GpuHistory {
        let series = |track: &Track| {
            let column = |value: fn(Cell) -> Option<f64>| {
                let values: Vec<_> = self.cells(track).map(|cell| value(cell).map(tenths)).collect();
                if values.iter().all(Option::is_none) { Vec::new() } else { values }
            };
            GpuSeries {
                uuid: track.uuid.clone(),
                index: track.index,
                name: track.name.clone(),
                vram_gb: track.vram_gb,
                utilization_percent: column(Cell::utilization),
                utilization_peak_percent: column(Cell::peak),
                memory_used_gb: column(Cell::memory),
                temperature_celsius: column(Cell::temperature),
                temperature_peak_celsius: column(Cell::hottest),
                power_watts: column(Cell::power),
            }
        };
        GpuHistory { from: self.from(), step_seconds: self.step_seconds(), gpus: tracks.map(series).collect() }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and within")]
fn percent(value: f64) -> u8 {
    value.round().clamp(0.0, 100.0) as u8
}
