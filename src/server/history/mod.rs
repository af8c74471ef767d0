//! GPU history of the last day, in bounded memory: a pure structure that records samples and returns ranges. Times are
//! the server's; of an agent's clock, only differences between its samples count.

mod cell;
mod file;
mod ring;
#[cfg(test)]
mod tests;

pub use cell::{GpuSample, HistoryCell};
pub use file::MAX_FILE_BYTES;
pub use ring::Ring;

use std::collections::BTreeMap;

use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};

/// The last hour, every 15 s: agents sample their GPUs every 5 s, and older ones report them every 30 s.
pub const FINE: Resolution = Resolution { step: Millis::from_secs(15), cells: 240 };
/// The last day, every two minutes.
pub const COARSE: Resolution = Resolution { step: Millis::from_secs(120), cells: 720 };
/// The maximum number of GPUs with history: a worker that registers other GPUs again and again must not fill the
/// memory.
const MAX_TRACKS: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution {
    /// The length of a cell.
    pub step: Millis,
    /// The number of cells.
    pub cells: usize,
}

impl Resolution {
    /// The index of the cell of a time, counted from 1970.
    pub const fn cell_index(self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.step.0)
    }

    /// The start of a cell.
    pub const fn cell_start(self, cell: i64) -> Timestamp {
        Timestamp(cell.saturating_mul(self.step.0))
    }
}

/// The history of one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuTrack {
    pub uuid: String,
    /// The index on its host.
    pub index: u32,
    pub name: String,
    pub vram_gb: Option<f64>,
    pub fine: Ring,
    pub coarse: Ring,
}

impl GpuTrack {
    fn new(gpu: &Gpu) -> Self {
        let mut track = Self {
            uuid: gpu.uuid.clone(),
            index: 0,
            name: String::new(),
            vram_gb: None,
            fine: Ring::new(FINE),
            coarse: Ring::new(COARSE),
        };
        track.update(gpu);
        track
    }

    fn update(&mut self, gpu: &Gpu) {
        self.index = gpu.index;
        self.vram_gb = gpu.vram_gb;
        if self.name != gpu.name {
            self.name.clone_from(&gpu.name);
        }
    }

    /// The ring with this resolution.
    pub fn ring(&self, resolution: Resolution) -> &Ring {
        if resolution == FINE { &self.fine } else { &self.coarse }
    }
}

/// The GPUs of all workers of the last day, also of deleted workers, for their jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    workers: BTreeMap<WorkerId, Vec<GpuTrack>>,
}

impl History {
    /// Records samples of a worker, oldest first by its own clock. The last one is now.
    pub fn record(
        &mut self,
        worker: &WorkerId,
        gpus: &[Gpu],
        batches: &[(Timestamp, Vec<(String, GpuSample)>)],
        now: Timestamp,
    ) {
        let Some((newest, _)) = batches.last() else { return };
        let mut free_tracks = MAX_TRACKS.saturating_sub(self.track_count());
        let tracks = self.workers.entry(worker.clone()).or_default();
        tracks.retain(|track| gpus.iter().any(|gpu| gpu.uuid == track.uuid));
        for gpu in gpus {
            let index = match tracks.iter().position(|track| track.uuid == gpu.uuid) {
                Some(index) => index,
                None if free_tracks > 0 => {
                    free_tracks -= 1;
                    tracks.push(GpuTrack::new(gpu));
                    tracks.len() - 1
                }
                None => continue,
            };
            let track = &mut tracks[index];
            track.update(gpu);
            // A clock that was set back leaves cells in the future.
            track.fine.discard_after(now);
            track.coarse.discard_after(now);
            for (at, samples) in batches {
                let Some((_, sample)) = samples.iter().find(|(uuid, _)| *uuid == gpu.uuid) else { continue };
                let at = now.min(Timestamp(now.0.saturating_sub((*newest - *at).0)));
                track.fine.record(at, sample);
                track.coarse.record(at, sample);
            }
        }
        tracks.sort_by_key(|track| track.index);
    }

    pub fn worker_tracks(&self, worker: &WorkerId) -> &[GpuTrack] {
        self.workers.get(worker).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn all_tracks(&self) -> impl Iterator<Item = &GpuTrack> {
        self.workers.values().flatten()
    }

    pub fn track_count(&self) -> usize {
        self.workers.values().map(Vec::len).sum()
    }

    /// Forgets GPUs without samples in the stored range.
    pub fn prune(&mut self, now: Timestamp) {
        let oldest = COARSE.cell_index(now) - i64::try_from(COARSE.cells).unwrap_or(i64::MAX);
        for tracks in self.workers.values_mut() {
            tracks.retain(|track| track.coarse.newest_index() > oldest);
        }
        self.workers.retain(|_, tracks| !tracks.is_empty());
    }

    /// Merges another history: of an earlier run, or of another server.
    pub fn merge(&mut self, other: Self) {
        let mut free_tracks = MAX_TRACKS.saturating_sub(self.track_count());
        for (worker, tracks) in other.workers {
            let known_tracks = self.workers.entry(worker).or_default();
            for track in tracks {
                if let Some(known_track) = known_tracks.iter_mut().find(|known_track| known_track.uuid == track.uuid) {
                    known_track.fine.merge(&track.fine);
                    known_track.coarse.merge(&track.coarse);
                } else if free_tracks > 0 {
                    free_tracks -= 1;
                    known_tracks.push(track);
                }
            }
            known_tracks.sort_by_key(|track| track.index);
        }
        self.workers.retain(|_, tracks| !tracks.is_empty());
    }
}
