//! Decides which GPUs no job may get, and why, from polls and from the GPUs that jobs have reserved.

use std::collections::{BTreeMap, BTreeSet};

use app::protocol::gpu::{GpuReading, Unavailable, UnavailableReason};

use super::provider::{GpuFault, GpuProcess, GpuSnapshot, format_processes};
use super::xid::{XidSeverity, classify_xid};

/// One poll of all GPUs, or why it failed.
pub type GpuPoll = Result<Vec<GpuSnapshot>, String>;

/// The state from all polls so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuHealth {
    gpus: BTreeMap<String, GpuState>,
    /// Set if the driver as a whole does not respond.
    driver_error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct GpuState {
    /// Foreign processes, as text.
    in_use: Option<String>,
    /// Memory errors at the last poll.
    ecc_errors: Option<u64>,
}

/// A GPU to quarantine, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFailure {
    pub uuid: String,
    pub detail: String,
}

impl GpuHealth {
    /// Records a poll. `reserved` are the GPUs of jobs: processes there are never foreign, because in a container PIDs
    /// are those of the host and identify nothing.
    pub fn record(&mut self, poll: &GpuPoll, reserved: &BTreeSet<String>) -> Vec<GpuFailure> {
        self.driver_error = poll.as_ref().err().map(|error| format!("the driver does not respond: {error}"));
        let mut failures = Vec::new();
        for snapshot in poll.iter().flatten() {
            let uuid = &snapshot.reading.uuid;
            let state = self.gpus.entry(uuid.clone()).or_default();
            let processes = snapshot.processes.as_deref().unwrap_or_default();
            let is_foreign = !processes.is_empty() && (!reserved.contains(uuid) || state.in_use.is_some());
            state.in_use = is_foreign.then(|| describe_use(processes));
            let before = state.ecc_errors;
            state.ecc_errors = snapshot.reading.ecc_errors.or(before);
            let ecc_increase = before.zip(state.ecc_errors).filter(|(before, now)| now > before);
            let ecc_increase =
                ecc_increase.map(|(before, now)| format!("uncorrected memory errors rose from {before} to {now}"));
            let faults = snapshot.faults.iter().filter_map(|fault| failure_reason(uuid, fault));
            failures.extend(faults.chain(ecc_increase).map(|detail| GpuFailure { uuid: uuid.clone(), detail }));
        }
        failures
    }

    /// A foreign process was found when a job was about to start.
    pub fn record_foreign_use(&mut self, uuid: &str, processes: &[GpuProcess]) {
        self.gpus.entry(uuid.to_owned()).or_default().in_use = Some(describe_use(processes));
    }

    /// No poll has finished for too long.
    pub fn mark_unresponsive(&mut self, detail: &str) {
        self.driver_error = Some(detail.to_owned());
    }

    /// Why no job may get this GPU.
    pub fn unavailable_reason(&self, uuid: &str, quarantined: Option<&str>) -> Option<Unavailable> {
        let in_use = self.gpus.get(uuid).and_then(|state| state.in_use.clone());
        // Reasons that only a user can clear come first.
        let detail = quarantined.map(str::to_owned).or_else(|| self.driver_error.clone());
        let quarantined = detail.map(|detail| Unavailable { reason: UnavailableReason::Quarantined, detail });
        quarantined.or_else(|| in_use.map(|detail| Unavailable { reason: UnavailableReason::InUse, detail }))
    }
}

/// Describes the processes.
pub fn describe_use(processes: &[GpuProcess]) -> String {
    format!("used by {}", format_processes(processes))
}

fn failure_reason(uuid: &str, fault: &GpuFault) -> Option<String> {
    match fault {
        GpuFault::Lost(error) => Some(format!("it no longer responds: {error}")),
        GpuFault::Xid(xid) => match classify_xid(*xid) {
            XidSeverity::GpuFailure(description) => Some(format!("XID {xid}: {description}")),
            XidSeverity::ApplicationError => {
                tracing::warn!("{uuid}: XID {xid}, an application error");
                None
            }
            XidSeverity::Informational => {
                tracing::warn!("{uuid}: XID {xid}; the GPU continues");
                None
            }
        },
    }
}

/// Adds missing GPUs to a poll: a known GPU that is missing is lost.
pub fn mark_missing_as_lost(poll: GpuPoll, known: &[String]) -> GpuPoll {
    let mut snapshots = poll?;
    for uuid in known {
        if !snapshots.iter().any(|gpu| gpu.reading.uuid == *uuid) {
            let reading = GpuReading { uuid: uuid.clone(), ..GpuReading::default() };
            let faults = vec![GpuFault::Lost("the driver no longer lists it".to_owned())];
            snapshots.push(GpuSnapshot { reading, processes: None, faults });
        }
    }
    // An unknown GPU was hidden from the agent, or was added later.
    snapshots.retain(|gpu| known.contains(&gpu.reading.uuid));
    Ok(snapshots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the tested functions take the result of a poll")]
    fn poll_result(pids: &[u32], ecc: Option<u64>, faults: &[GpuFault]) -> GpuPoll {
        let reading = GpuReading { uuid: "GPU-1".to_owned(), ecc_errors: ecc, ..GpuReading::default() };
        let processes = pids.iter().map(|pid| GpuProcess { pid: *pid, name: Some("x".to_owned()) }).collect();
        Ok(vec![GpuSnapshot { reading, processes: Some(processes), faults: faults.to_vec() }])
    }

    fn reason(health: &GpuHealth) -> Option<(UnavailableReason, String)> {
        health.unavailable_reason("GPU-1", None).map(|unavailable| (unavailable.reason, unavailable.detail))
    }

    #[test]
    fn foreign_processes_make_a_gpu_unavailable_and_own_ones_do_not() {
        let (reserved, none_reserved) = (BTreeSet::from(["GPU-1".to_owned()]), BTreeSet::new());
        let mut health = GpuHealth::default();
        health.record(&poll_result(&[7], None, &[]), &reserved);
        assert_eq!(reason(&health), None);
        health.record(&poll_result(&[7], None, &[]), &none_reserved);
        assert_eq!(reason(&health), Some((UnavailableReason::InUse, "used by process 7 (x)".to_owned())));
        // Granted although it was reported: the process was there before.
        health.record(&poll_result(&[7], None, &[]), &reserved);
        assert!(reason(&health).is_some());
        health.record(&poll_result(&[], None, &[]), &reserved);
        assert_eq!(reason(&health), None);
        health.record(&poll_result(&[8], None, &[]), &reserved);
        assert_eq!(reason(&health), None);
    }

    #[test]
    fn severe_errors_and_rising_counts_quarantine_a_gpu() {
        let (none_reserved, mut health) = (BTreeSet::new(), GpuHealth::default());
        let mut details = |poll: &GpuPoll| {
            health.record(poll, &none_reserved).into_iter().map(|failure| failure.detail).collect::<Vec<_>>()
        };
        assert_eq!(details(&poll_result(&[], Some(4), &[GpuFault::Xid(31), GpuFault::Xid(63)])), [""; 0]);
        assert_eq!(details(&poll_result(&[], Some(4), &[GpuFault::Xid(79)])), ["XID 79: it has fallen off the bus"]);
        assert_eq!(details(&poll_result(&[], Some(5), &[])), ["uncorrected memory errors rose from 4 to 5"]);
        assert_eq!(details(&poll_result(&[], None, &[])), [""; 0]);
        assert_eq!(details(&poll_result(&[], Some(5), &[])), [""; 0]);
        assert_eq!(details(&poll_result(&[], Some(0), &[])), [""; 0]);
        let lost = mark_missing_as_lost(Ok(Vec::new()), &["GPU-1".to_owned()]);
        assert_eq!(details(&lost), ["it no longer responds: the driver no longer lists it"]);
    }

    #[test]
    fn gpus_are_available_again_when_the_driver_responds() {
        let (none_reserved, mut health) = (BTreeSet::new(), GpuHealth::default());
        assert_eq!(health.record(&Err("gone".to_owned()), &none_reserved), []);
        assert_eq!(
            reason(&health),
            Some((UnavailableReason::Quarantined, "the driver does not respond: gone".to_owned()))
        );
        health.record(&poll_result(&[], None, &[]), &none_reserved);
        assert_eq!(reason(&health), None);
        health.mark_unresponsive("no answer for 15 s");
        assert!(reason(&health).is_some_and(|(_, detail)| detail == "no answer for 15 s"));
        assert_eq!(
            health.unavailable_reason("GPU-1", Some("XID 79")).map(|unavailable| unavailable.detail),
            Some("XID 79".to_owned())
        );
    }
}
