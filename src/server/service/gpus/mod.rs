//! GPU reports of agents: inventory at registration, telemetry with heartbeats.
//!
//! Telemetry is kept in memory ([`GpuReadings`]) and costs no commit. Whether a GPU is unavailable is the worker's
//! state, and is written only when it changes.

pub mod history;
pub mod views;

use std::sync::Arc;

use app::domain::allowed_values::LimitedItems;
use app::domain::audit::AuditAction;
use app::domain::gpu::{
    Gpu, GpuReport, GpuReportChange, MemoryKind, Unavailable, UnavailableReason, changed_gpus, report_change,
};
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::text::is_control_or_invisible;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::protocol::gpu as wire;
use app::protocol::gpu::{GpuReading, GpuReadingView, GpuTelemetry};
use serde_json::{Value, json};

use self::history::GpuHistoryStore;
use super::error::{InvalidInput, ServiceError};
use super::unit_of_work::UnitOfWork;
use crate::service::ServiceContext;
use crate::service::access::AccessService;
use crate::service::workers::WorkerService;
use crate::service::workers::gpu_readings::GpuReadings;
use crate::store::cache::state::FleetState;

/// The maximum number of GPUs of a host, and of concurrent jobs.
pub const MAX_GPUS: u32 = 64;
const MAX_SAMPLES: usize = 12;
/// The maximum length of the reason why a GPU is unavailable, in characters; the rest is cut.
const MAX_DETAIL: usize = 256;

/// Validates a heartbeat's telemetry.
pub fn check_telemetry(telemetry: &[GpuTelemetry]) -> Result<(), ServiceError> {
    if telemetry.len() > MAX_SAMPLES {
        return Err(InvalidInput::TooMuch { items: LimitedItems::TelemetrySamples, limit: MAX_SAMPLES as u64 }.into());
    }
    if telemetry.iter().any(|sample| sample.gpus.len() > MAX_GPUS as usize) {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Gpus, limit: MAX_GPUS.into() }.into());
    }
    Ok(())
}

/// The availability of GPUs by the newest sample; empty without one.
pub fn gpu_reports(telemetry: &[GpuTelemetry]) -> Vec<GpuReport> {
    let report = |reading: &GpuReading| GpuReport {
        uuid: reading.uuid.clone(),
        unavailable: unavailable_from_wire(reading.unavailable.as_ref()),
    };
    telemetry.last().map(|newest| newest.gpus.iter().map(report).collect()).unwrap_or_default()
}

/// Writes the reported availability of GPUs if it has changed, and plans. Only changes of quarantine are audited:
/// processes of other users on a GPU start and stop all day, and would flood the log.
pub async fn apply_gpu_reports(
    unit: &mut UnitOfWork<'_>,
    worker: &WorkerId,
    reported: &[GpuReport],
) -> Result<(), ServiceError> {
    let before = unit.worker(worker).await?.worker;
    let after = before.clone().gpus_reported(reported);
    let gpus = before.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    let (mut unavailable, mut available) = (Vec::new(), Vec::new());
    for (gpu, now) in changed_gpus(gpus, reported)
        .filter(|(gpu, now)| is_quarantine(gpu.unavailable.as_ref()) || is_quarantine(now.as_ref()))
    {
        match (now, &gpu.unavailable) {
            (Some(reason), _) => unavailable.push(unavailable_detail(gpu, reason)),
            (None, reason) => available.extend(reason.as_ref().map(|reason| unavailable_detail(gpu, reason))),
        }
    }
    if unavailable.is_empty() && available.is_empty() {
        unit.save_worker_unrecorded(&before, &after).await?;
    } else {
        let detail = json!({"unavailable": unavailable, "available": available});
        unit.save_worker(&before, &after, AuditAction::WorkerGpus, &detail).await?;
    }
    if before != after {
        unit.request_planning();
    }
    Ok(())
}

/// Returns whether a GPU leaves quarantine, which is audited. A GPU that becomes unavailable is written immediately: no
/// job may get it.
fn leaves_quarantine(worker: &Worker, reported: &[GpuReport]) -> bool {
    let gpus = worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    let was_quarantined =
        |report: &GpuReport| gpus.iter().any(|gpu| gpu.uuid == report.uuid && is_quarantine(gpu.unavailable.as_ref()));
    reported.iter().any(|report| !is_quarantine(report.unavailable.as_ref()) && was_quarantined(report))
}

fn is_quarantine(unavailable: Option<&Unavailable>) -> bool {
    unavailable.is_some_and(|unavailable| unavailable.reason == UnavailableReason::Quarantined)
}

/// The unavailable ones of these GPUs, for the audit log.
pub fn unavailable_details(gpus: &[Gpu]) -> Vec<Value> {
    gpus.iter().filter_map(|gpu| Some(unavailable_detail(gpu, gpu.unavailable.as_ref()?))).collect()
}

fn unavailable_detail(gpu: &Gpu, unavailable: &Unavailable) -> Value {
    json!({"index": gpu.index, "uuid": gpu.uuid, "reason": unavailable.reason.as_str(), "detail": unavailable.detail})
}

/// GPUs, their readings and their history.
pub struct GpuService {
    pub readings: Arc<GpuReadings>,
    pub history: GpuHistoryStore,
    pub(super) access: Arc<AccessService>,
    pub(super) workers: Arc<WorkerService>,
    pub(super) context: Arc<ServiceContext>,
}

impl GpuService {
    /// Returns whether the reported availability is to be written. A change of the reason only is rate-limited, because
    /// processes start and stop often.
    pub(super) fn changes_gpu_availability(&self, worker: &Worker, reported: &[GpuReport]) -> bool {
        match worker
            .capability()
            .map_or(GpuReportChange::Unchanged, |capability| report_change(&capability.gpus, reported))
        {
            GpuReportChange::Unchanged => false,
            GpuReportChange::DetailOnly => self.readings.may_update_detail(&worker.id, self.context.now()),
            GpuReportChange::State => {
                !leaves_quarantine(worker, reported) || self.access.check_worker_change_rate(&worker.id).is_ok()
            }
        }
    }

    pub async fn prune_readings(&self) -> Result<(), ServiceError> {
        let worker_ids = |fleet_state: &FleetState| fleet_state.workers().map(|row| row.worker().id.clone()).collect();
        let existing = self.context.read_recent().await?.with_state(worker_ids).await?;
        self.readings.retain(&existing);
        Ok(())
    }

    /// Records a worker's readings, and notifies its viewers. Ids that are not the worker's are ignored.
    pub(super) fn record_readings(self: &Arc<Self>, worker: &Worker, telemetry: &[GpuTelemetry], held: &[Job]) {
        let (Some(newest), Some(capability), Ok(())) =
            (telemetry.last(), worker.capability(), worker.check_heartbeat())
        else {
            return;
        };
        self.record_telemetry(worker, telemetry, held);
        let now = self.context.now();
        let newest_of = |gpu: &Gpu| newest.gpus.iter().find(|reading| reading.uuid == gpu.uuid);
        let checked = |gpu: &Gpu| Some((gpu.uuid.clone(), checked_reading(newest_of(gpu)?, now)));
        let topics = self.readings.record(&worker.id, capability.gpus.iter().filter_map(checked).collect(), now);
        // Only browsers connected to this server see the readings.
        self.context.notifier.notify(topics);
    }
}

/// Drops implausible values: a broken sensor loses its value, not the heartbeat.
pub(super) fn checked_reading(reported: &GpuReading, at: Timestamp) -> GpuReadingView {
    let within = |value: Option<f64>, min: f64, max: f64| value.filter(|value| (min..=max).contains(value));
    let clock = |mhz: Option<u32>| mhz.filter(|mhz| *mhz <= 100_000);
    GpuReadingView {
        at,
        utilization_percent: within(reported.utilization_percent, 0.0, 100.0),
        memory_used_gb: within(reported.memory_used_gb, 0.0, 100_000.0),
        temperature_celsius: within(reported.temperature_celsius, -100.0, 300.0),
        power_watts: within(reported.power_watts, 0.0, 100_000.0),
        power_limit_watts: within(reported.power_limit_watts, 0.0, 100_000.0),
        clock_mhz: clock(reported.clock_mhz),
        memory_clock_mhz: clock(reported.memory_clock_mhz),
        ecc_errors: reported.ecc_errors,
    }
}

/// Converts a registered GPU to the domain type.
pub fn gpu_from_wire(gpu: &wire::Gpu) -> Gpu {
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
        unavailable: unavailable_from_wire(gpu.unavailable.as_ref()),
    }
}

/// Cuts an agent's text to the stored length.
pub(super) fn truncate_detail(text: &str) -> String {
    text.chars().filter(|c| !is_control_or_invisible(*c)).take(MAX_DETAIL).collect()
}

fn unavailable_from_wire(reported: Option<&wire::Unavailable>) -> Option<Unavailable> {
    reported.map(|unavailable| Unavailable {
        reason: match unavailable.reason {
            wire::UnavailableReason::Quarantined => UnavailableReason::Quarantined,
            wire::UnavailableReason::InUse => UnavailableReason::InUse,
        },
        detail: truncate_detail(&unavailable.detail),
    })
}
