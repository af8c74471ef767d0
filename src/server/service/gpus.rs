//! What agents say of their GPUs: at registration what there is, with heartbeats how it does.
//!
//! How a GPU does is kept in memory ([`Readings`]) and costs no commit. That an agent withholds one, or gives it back, is
//! the worker's state: it is written when it is news, and only then.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use app::domain::audit::Action;
use app::domain::gpu::{Gpu, MemoryKind, Novelty, Withheld, WithheldReason, Word, news, novelty};
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::text::acts;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Worker;
use app::protocol::gpu::{self as wire, GpuReading, Reading, Telemetry};
use app::protocol::topic::Topic;
use serde_json::{Value, json};

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::registration::MAX_GPUS;
use super::unit::Unit;
use crate::store::known::Known;

/// The most moments that one heartbeat may tell of.
const MAX_MOMENTS: usize = 12;
/// The longest reason for withholding a GPU, in characters; what is longer is cut.
const MAX_DETAIL: usize = 256;
/// Who looks at a worker is told of its readings so often at most.
const RING_EVERY: Millis = Millis::seconds(5);
/// Why a GPU is withheld is written in other words so often at most.
const REWORD_EVERY: Millis = Millis::seconds(60);
/// Who has not asked for a worker for so long does not look at it any more. Agents send readings every 30 s at most.
const LOOKS_FOR: Millis = Millis::seconds(90);

/// The newest readings of the workers whose agents talk to this server, and who looks at them.
#[derive(Default)]
pub struct Readings(Mutex<Board>);

#[derive(Default)]
struct Board {
    workers: HashMap<WorkerId, Kept>,
    /// Who looks at all of them.
    all: Eyes,
}

#[derive(Default)]
struct Kept {
    readings: Vec<(String, Reading)>,
    eyes: Eyes,
    reworded_at: Timestamp,
}

/// Whether somebody looks, and when they were last told that there is something to see.
#[derive(Default)]
struct Eyes {
    looked_at: Timestamp,
    rung_at: Timestamp,
}

impl Eyes {
    /// Whether they are to be told now.
    fn ring(&mut self, now: Timestamp) -> bool {
        let rings = now - self.looked_at <= LOOKS_FOR && now - self.rung_at >= RING_EVERY;
        if rings {
            self.rung_at = now;
        }
        rings
    }
}

impl Readings {
    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Takes readings instead of those before. Answers with what those who look are to be told.
    fn note(&self, worker: &WorkerId, readings: Vec<(String, Reading)>, now: Timestamp) -> Vec<Topic> {
        let mut board = self.board();
        let all = board.all.ring(now).then_some(Topic::Gpus);
        let kept = board.workers.entry(worker.clone()).or_default();
        kept.readings = readings;
        let one = kept.eyes.ring(now).then(|| Topic::Worker(worker.clone()));
        one.into_iter().chain(all).collect()
    }

    /// The newest reading of each GPU of a worker, by its id; somebody looks at them.
    pub fn look(&self, worker: &WorkerId, now: Timestamp) -> HashMap<String, Reading> {
        let mut board = self.board();
        let kept = board.workers.entry(worker.clone()).or_default();
        kept.eyes.looked_at = now;
        kept.readings.iter().cloned().collect()
    }

    /// Somebody looks at all of them.
    pub(super) fn all_are_looked_at(&self, now: Timestamp) {
        self.board().all.looked_at = now;
    }

    /// The same of a worker among all: somebody looks at all of them.
    pub fn look_at_all(&self, worker: &WorkerId, now: Timestamp) -> HashMap<String, Reading> {
        let mut board = self.board();
        board.all.looked_at = now;
        board.workers.get(worker).map(|kept| kept.readings.iter().cloned().collect()).unwrap_or_default()
    }

    /// Whether other words about GPUs that are withheld as before are to be written now.
    pub(super) fn may_reword(&self, worker: &WorkerId, now: Timestamp) -> bool {
        let mut board = self.board();
        let kept = board.workers.entry(worker.clone()).or_default();
        let may = now - kept.reworded_at >= REWORD_EVERY;
        if may {
            kept.reworded_at = now;
        }
        may
    }

    /// Forgets those of workers that are not among these.
    pub fn keep(&self, living: &HashSet<WorkerId>) {
        self.board().workers.retain(|worker, _| living.contains(worker));
    }

    /// Of how many workers there are any.
    #[cfg(test)]
    pub fn number(&self) -> usize {
        self.board().workers.len()
    }

    /// Forgets those of a worker that is gone.
    pub fn forget(&self, worker: &WorkerId) {
        self.board().workers.remove(worker);
    }
}

/// What a heartbeat tells of GPUs, checked.
pub fn check_telemetry(telemetry: &[Telemetry]) -> Result<(), Refusal> {
    if telemetry.len() > MAX_MOMENTS {
        return Err(Invalid::TooMuch { what: "moments of telemetry", limit: MAX_MOMENTS as u64 }.into());
    }
    if telemetry.iter().any(|moment| moment.gpus.len() > MAX_GPUS as usize) {
        return Err(Invalid::TooMuch { what: "GPUs", limit: MAX_GPUS.into() }.into());
    }
    Ok(())
}

/// What the newest moment says of whether jobs may have the GPUs; nothing if there is none.
pub fn words(telemetry: &[Telemetry]) -> Vec<Word> {
    let word =
        |reading: &GpuReading| Word { uuid: reading.uuid.clone(), withheld: withheld(reading.withheld.as_ref()) };
    telemetry.last().map(|newest| newest.gpus.iter().map(word).collect()).unwrap_or_default()
}

/// Writes what an agent says of its GPUs, if it is news, and looks who fits now. On record is only what is about quarantine:
/// somebody's own programs on a GPU come and go all day, and would be most of the trail.
pub async fn gpus_said(unit: &mut Unit<'_>, worker: &WorkerId, said: &[Word]) -> Result<(), Refusal> {
    let before = unit.worker(worker).await?.worker;
    let after = before.clone().gpus_said(said);
    let known = before.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    let (mut withheld, mut given_back) = (Vec::new(), Vec::new());
    for (gpu, now) in
        news(known, said).filter(|(gpu, now)| is_quarantine(gpu.withheld.as_ref()) || is_quarantine(now.as_ref()))
    {
        match (now, &gpu.withheld) {
            (Some(why), _) => withheld.push(on_record(gpu, why)),
            (None, why) => given_back.extend(why.as_ref().map(|why| on_record(gpu, why))),
        }
    }
    if withheld.is_empty() && given_back.is_empty() {
        unit.save_worker_unrecorded(&before, &after).await?;
    } else {
        let detail = json!({"withheld": withheld, "given_back": given_back});
        unit.save_worker(&before, &after, Action::WorkerGpus, &detail).await?;
    }
    if before != after {
        unit.plan_after();
    }
    Ok(())
}

/// Whether a GPU leaves quarantine, which is on record. What is withheld is taken at once: no job may get it.
fn gives_back(worker: &Worker, said: &[Word]) -> bool {
    let known = worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    let held = |word: &Word| known.iter().any(|gpu| gpu.uuid == word.uuid && is_quarantine(gpu.withheld.as_ref()));
    said.iter().any(|word| !is_quarantine(word.withheld.as_ref()) && held(word))
}

fn is_quarantine(withheld: Option<&Withheld>) -> bool {
    withheld.is_some_and(|withheld| withheld.reason == WithheldReason::Quarantined)
}

/// The withheld ones of these, for the trail.
pub fn all_on_record(gpus: &[Gpu]) -> Vec<Value> {
    gpus.iter().filter_map(|gpu| Some(on_record(gpu, gpu.withheld.as_ref()?))).collect()
}

fn on_record(gpu: &Gpu, why: &Withheld) -> Value {
    json!({"index": gpu.index, "uuid": gpu.uuid, "reason": why.reason.as_str(), "detail": why.detail})
}

impl Core {
    /// Whether what a worker's agent says of its GPUs is to be written. Where only the words are others, that can wait:
    /// processes come and go, and the trail is no place to follow them.
    pub(super) fn is_news_of_gpus(&self, worker: &Worker, said: &[Word]) -> bool {
        match worker.capability().map_or(Novelty::None, |capability| novelty(&capability.gpus, said)) {
            Novelty::None => false,
            Novelty::Words => self.readings.may_reword(&worker.id, self.now()),
            Novelty::State => !gives_back(worker, said) || self.worker_may_change(&worker.id).is_ok(),
        }
    }

    /// Forgets how the GPUs of workers were that are gone, whichever server removed them.
    pub async fn forget_readings(&self) -> Result<(), Refusal> {
        let all = |known: &Known| known.workers().map(|stored| stored.worker.id.clone()).collect();
        let living = self.recent().await?.see(all).await?;
        self.readings.keep(&living);
        Ok(())
    }

    /// Keeps how a worker's GPUs are, and tells who looks at it. Ids that are not the worker's mean nothing.
    pub(super) fn keep_readings(self: &Arc<Self>, worker: &Worker, telemetry: &[Telemetry], held: &[Job]) {
        let (Some(newest), Some(capability), Ok(())) = (telemetry.last(), worker.capability(), worker.may_beat())
        else {
            return;
        };
        self.keep_history(worker, telemetry, held);
        let now = self.now();
        let newest_of = |gpu: &Gpu| newest.gpus.iter().find(|said| said.uuid == gpu.uuid);
        let of = |gpu: &Gpu| Some((gpu.uuid.clone(), reading(newest_of(gpu)?, now)));
        let told = self.readings.note(&worker.id, capability.gpus.iter().filter_map(of).collect(), now);
        // Only browsers of this server's can see them.
        self.hub.bump(told);
    }
}

/// What sensors said, as far as it makes sense: a broken one costs what it says, not the heartbeat.
pub(super) fn reading(said: &GpuReading, at: Timestamp) -> Reading {
    let within = |value: Option<f64>, least: f64, most: f64| value.filter(|value| (least..=most).contains(value));
    let clock = |mhz: Option<u32>| mhz.filter(|mhz| *mhz <= 100_000);
    Reading {
        at,
        utilization_percent: within(said.utilization_percent, 0.0, 100.0),
        memory_used_gb: within(said.memory_used_gb, 0.0, 100_000.0),
        temperature_celsius: within(said.temperature_celsius, -100.0, 300.0),
        power_watts: within(said.power_watts, 0.0, 100_000.0),
        power_limit_watts: within(said.power_limit_watts, 0.0, 100_000.0),
        clock_mhz: clock(said.clock_mhz),
        memory_clock_mhz: clock(said.memory_clock_mhz),
        ecc_errors: said.ecc_errors,
    }
}

/// A registered GPU, in the rules' words.
pub fn registered(gpu: &wire::Gpu) -> Gpu {
    Gpu {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        name: gpu.name.clone(),
        vram_gb: gpu.vram_gb,
        memory: gpu.memory_kind.map(|kind| match kind {
            wire::MemoryKind::Dedicated => MemoryKind::Dedicated,
            wire::MemoryKind::Unified => MemoryKind::Unified,
        }),
        part_of: gpu.part_of.clone(),
        withheld: withheld(gpu.withheld.as_ref()),
    }
}

/// The same, in the wire's.
pub fn shown(gpu: &Gpu) -> wire::Gpu {
    wire::Gpu {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        name: gpu.name.clone(),
        vram_gb: gpu.vram_gb,
        memory_kind: gpu.memory.map(|kind| match kind {
            MemoryKind::Dedicated => wire::MemoryKind::Dedicated,
            MemoryKind::Unified => wire::MemoryKind::Unified,
        }),
        part_of: gpu.part_of.clone(),
        withheld: gpu.withheld.as_ref().map(|withheld| wire::Withheld {
            reason: match withheld.reason {
                WithheldReason::Quarantined => wire::WithheldReason::Quarantined,
                WithheldReason::InUse => wire::WithheldReason::InUse,
            },
            detail: withheld.detail.clone(),
        }),
    }
}

/// An agent's words, as far as they are kept.
pub(super) fn shortened(words: &str) -> String {
    words.chars().filter(|c| !acts(*c)).take(MAX_DETAIL).collect()
}

fn withheld(said: Option<&wire::Withheld>) -> Option<Withheld> {
    said.map(|said| Withheld {
        reason: match said.reason {
            wire::WithheldReason::Quarantined => WithheldReason::Quarantined,
            wire::WithheldReason::InUse => WithheldReason::InUse,
        },
        detail: shortened(&said.detail),
    })
}
