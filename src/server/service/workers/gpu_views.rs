//! Views of a worker's GPUs: the state of each, its reading, and the job that holds it.

use std::borrow::Borrow;
use std::collections::HashMap;

use app::domain::gpu::{Gpu, GpuAvailability, GpuTally, MemoryKind, UnavailableReason};
use app::domain::job::Job;
use app::domain::worker::Worker;
use app::protocol::gpu as wire;
use app::protocol::gpu::{GpuReadingView, GpuView};
use app::protocol::gpus::GpuCounts;
use app::protocol::status::GpuState;

/// A worker's GPUs, each with its state given the leases on the worker.
pub fn gpu_states<'w, J: Borrow<Job>>(worker: &'w Worker, leased: &[J]) -> impl Iterator<Item = (&'w Gpu, GpuState)> {
    let is_leased = |uuid: &str| gpu_holder(uuid, leased).is_some();
    worker.gpu_availability(is_leased).map(|(gpu, availability)| (gpu, gpu_state(availability)))
}

/// Converts to the wire type.
pub fn gpu_counts(tally: GpuTally) -> GpuCounts {
    let mut counts = GpuCounts::default();
    tally.iter().for_each(|(availability, count)| counts.add(gpu_state(availability), count.into()));
    counts
}

/// A worker's GPUs with their readings and holders.
pub(in crate::service) fn gpu_views<J: Borrow<Job>>(
    worker: &Worker,
    leased: &[J],
    mut readings: HashMap<String, GpuReadingView>,
) -> Vec<GpuView> {
    if worker.check_heartbeat().is_err() {
        readings.clear();
    }
    let view = |(gpu, state): (&Gpu, GpuState)| GpuView {
        gpu: gpu_to_wire(gpu),
        state,
        job_id: gpu_holder(&gpu.uuid, leased).map(|job| job.id.clone()),
        reading: readings.remove(&gpu.uuid),
        lately: Vec::new(),
    };
    gpu_states(worker, leased).map(view).collect()
}

/// Returns the job that holds a GPU, among those with leases on the worker.
fn gpu_holder<'j, J: Borrow<Job>>(uuid: &str, leased: &'j [J]) -> Option<&'j Job> {
    leased.iter().map(Borrow::borrow).find(|job| job.holds_gpu(uuid))
}

const fn gpu_state(availability: GpuAvailability) -> GpuState {
    match availability {
        GpuAvailability::Busy => GpuState::Busy,
        GpuAvailability::Free => GpuState::Free,
        GpuAvailability::Unavailable(UnavailableReason::InUse) => GpuState::InUse,
        GpuAvailability::Unavailable(UnavailableReason::Quarantined) => GpuState::Quarantined,
        GpuAvailability::NotConnected => GpuState::NotConnected,
    }
}

/// Converts to the wire type.
fn gpu_to_wire(gpu: &Gpu) -> wire::Gpu {
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
        unavailable: gpu.unavailable.as_ref().map(|unavailable| wire::Unavailable {
            reason: match unavailable.reason {
                UnavailableReason::Quarantined => wire::UnavailableReason::Quarantined,
                UnavailableReason::InUse => wire::UnavailableReason::InUse,
            },
            detail: unavailable.detail.clone(),
        }),
    }
}
