//! How GPUs did over the last day, in memory that does not grow: a pure structure that is told moments and asked for
//! ranges. Time goes by the server's clock; of an agent's, only the spans between its moments count.

mod cell;
mod file;
mod ring;
#[cfg(test)]
mod tests;

pub use cell::{Cell, Sample};
pub use file::LARGEST;
pub use ring::Ring;

use std::collections::BTreeMap;

use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};

/// Of the last hour, every 15 s: agents look at their GPUs every 5 s, and older ones tell of them every 30 s.
pub const FINE: Grain = Grain { step: Millis::seconds(15), cells: 240 };
/// Of the last day, every two minutes.
pub const COARSE: Grain = Grain { step: Millis::seconds(120), cells: 720 };
/// Of more GPUs there is no history: a worker that registers other GPUs again and again must not fill the memory.
const MOST_TRACKS: usize = 20_000;

/// How long a cell of a ring is, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grain {
    /// The time that a cell is about.
    pub step: Millis,
    /// How many are kept.
    pub cells: usize,
}

impl Grain {
    /// The number of the cell that a moment falls into, counted from 1970.
    pub const fn cell_of(self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.step.0)
    }

    /// When a cell begins.
    pub const fn start_of(self, cell: i64) -> Timestamp {
        Timestamp(cell.saturating_mul(self.step.0))
    }
}

/// What is kept of one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// Its stable id.
    pub uuid: String,
    /// Its number on the host.
    pub index: u32,
    /// Model.
    pub name: String,
    /// Memory in GB.
    pub vram_gb: Option<f64>,
    /// The last hour.
    pub fine: Ring,
    /// The last day.
    pub coarse: Ring,
}

impl Track {
    fn new(gpu: &Gpu) -> Self {
        let mut track = Self {
            uuid: gpu.uuid.clone(),
            index: 0,
            name: String::new(),
            vram_gb: None,
            fine: Ring::new(FINE),
            coarse: Ring::new(COARSE),
        };
        track.is_now(gpu);
        track
    }

    fn is_now(&mut self, gpu: &Gpu) {
        self.index = gpu.index;
        self.vram_gb = gpu.vram_gb;
        if self.name != gpu.name {
            self.name.clone_from(&gpu.name);
        }
    }

    /// What is kept of it with this grain.
    pub fn ring(&self, grain: Grain) -> &Ring {
        if grain == FINE { &self.fine } else { &self.coarse }
    }
}

/// The GPUs of all workers that were heard of in the last day; those of workers that are gone too, for their jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    workers: BTreeMap<WorkerId, Vec<Track>>,
}

impl History {
    /// A worker told how its GPUs were at some moments, oldest first by its own clock. The last of them is now.
    pub fn note(
        &mut self,
        worker: &WorkerId,
        gpus: &[Gpu],
        told: &[(Timestamp, Vec<(String, Sample)>)],
        now: Timestamp,
    ) {
        let Some((newest, _)) = told.last() else { return };
        let mut room = MOST_TRACKS.saturating_sub(self.tracks());
        let tracks = self.workers.entry(worker.clone()).or_default();
        tracks.retain(|track| gpus.iter().any(|gpu| gpu.uuid == track.uuid));
        for gpu in gpus {
            let place = match tracks.iter().position(|track| track.uuid == gpu.uuid) {
                Some(place) => place,
                None if room > 0 => {
                    room -= 1;
                    tracks.push(Track::new(gpu));
                    tracks.len() - 1
                }
                None => continue,
            };
            let track = &mut tracks[place];
            track.is_now(gpu);
            // A clock that was set back leaves cells behind that have not happened.
            track.fine.rewind(now);
            track.coarse.rewind(now);
            for (at, samples) in told {
                let Some((_, sample)) = samples.iter().find(|(uuid, _)| *uuid == gpu.uuid) else { continue };
                let at = now.min(Timestamp(now.0.saturating_sub((*newest - *at).0)));
                track.fine.note(at, sample);
                track.coarse.note(at, sample);
            }
        }
        tracks.sort_by_key(|track| track.index);
    }

    /// The GPUs of a worker.
    pub fn of(&self, worker: &WorkerId) -> &[Track] {
        self.workers.get(worker).map(Vec::as_slice).unwrap_or_default()
    }

    /// Those of all workers.
    pub fn all(&self) -> impl Iterator<Item = &Track> {
        self.workers.values().flatten()
    }

    /// How many GPUs there are.
    pub fn tracks(&self) -> usize {
        self.workers.values().map(Vec::len).sum()
    }

    /// Forgets what nobody can ask for any more.
    pub fn prune(&mut self, now: Timestamp) {
        let oldest = COARSE.cell_of(now) - i64::try_from(COARSE.cells).unwrap_or(i64::MAX);
        for tracks in self.workers.values_mut() {
            tracks.retain(|track| track.coarse.newest() > oldest);
        }
        self.workers.retain(|_, tracks| !tracks.is_empty());
    }

    /// Takes over what another history knows and this one does not: that of an earlier life, or of another server.
    pub fn merge(&mut self, other: Self) {
        let mut room = MOST_TRACKS.saturating_sub(self.tracks());
        for (worker, tracks) in other.workers {
            let ours = self.workers.entry(worker).or_default();
            for track in tracks {
                if let Some(known) = ours.iter_mut().find(|known| known.uuid == track.uuid) {
                    known.fine.merge(&track.fine);
                    known.coarse.merge(&track.coarse);
                } else if room > 0 {
                    room -= 1;
                    ours.push(track);
                }
            }
            ours.sort_by_key(|track| track.index);
        }
        self.workers.retain(|_, tracks| !tracks.is_empty());
    }
}
