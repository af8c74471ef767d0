//! GPU reports of agents, in the rules and in the model.

use super::model::{FleetModel, ModelWorker};
use super::server::{PlanningTrigger, SimulatedServer};
use crate::domain::fixtures::unavailable;
use crate::domain::gpu::{Gpu, GpuReport, Unavailable, changed_gpus};

/// Why a GPU is unavailable, if the bit of its index is set.
fn unavailable_reason(gpu: &Gpu, unavailable_bits: u8) -> Option<Unavailable> {
    (unavailable_bits & (1 << gpu.index) != 0).then(|| unavailable("XID 79"))
}

impl SimulatedServer {
    /// Applies a heartbeat that reports exactly these GPUs of a worker as unavailable.
    pub fn gpus_reported(&mut self, index: usize, unavailable_bits: u8) -> Option<PlanningTrigger> {
        self.record_contact(index)?;
        let before = self.workers[index].clone()?;
        before.check_heartbeat().ok()?;
        let gpus = before.capability().map(|capability| capability.gpus.clone()).unwrap_or_default();
        let report =
            |gpu: &Gpu| GpuReport { uuid: gpu.uuid.clone(), unavailable: unavailable_reason(gpu, unavailable_bits) };
        let reports: Vec<GpuReport> = gpus.iter().map(report).collect();
        let has_changes = changed_gpus(&gpus, &reports).next().is_some();
        self.workers[index] = Some(before.gpus_reported(&reports));
        Some(if has_changes { PlanningTrigger::Follows } else { PlanningTrigger::No })
    }
}

impl FleetModel {
    pub fn gpus_reported(&mut self, index: usize, unavailable_bits: u8) -> Option<()> {
        self.record_contact(index).filter(|worker| worker.is_connected())?.mark_unavailable(unavailable_bits);
        Some(())
    }

    /// The GPUs of a worker that jobs can use.
    pub fn usable_gpus(&self, index: usize) -> impl Iterator<Item = &Gpu> {
        self.workers[index].gpus.iter().filter(|gpu| gpu.unavailable.is_none())
    }

    /// Whether it could run any job.
    pub fn can_run_jobs(&self, index: usize) -> bool {
        self.workers[index].gpus.is_empty() || self.usable_gpus(index).next().is_some()
    }
}

impl ModelWorker {
    /// Sets which GPUs are unavailable; a registration sets none.
    pub fn mark_unavailable(&mut self, unavailable_bits: u8) {
        self.gpus.iter_mut().for_each(|gpu| gpu.unavailable = unavailable_reason(gpu, unavailable_bits));
    }
}
