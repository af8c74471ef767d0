//! Checks the granted GPUs before a job starts and after it has ended: whether they are healthy, and free.

use std::time::Duration;

use app::protocol::gpu::{Unavailable, UnavailableReason};
use tokio::time::Instant;

use super::GpuMonitor;
use super::health::{GpuFailure, GpuPoll, describe_use};
use super::provider::{GpuFault, GpuProcess, GpuSnapshot, format_processes};

/// Timeout of the check before a job.
const PREFLIGHT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long processes of an ended job may still use its GPUs.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PreflightIssue {
    /// To be unavailable from now on.
    Broken(GpuFailure),
    /// Already unavailable; the offer was created before that.
    AlreadyUnavailable(String, Unavailable),
    /// Used by a foreign process.
    InUse(String, Vec<GpuProcess>),
    /// The driver as a whole fails, possibly temporarily.
    DriverError(String, String),
}

impl GpuMonitor {
    /// Checks whether a job may start on these GPUs: the driver responds for each, none is in quarantine, and no
    /// foreign process uses them. Unhealthy ones are unavailable, so that the next job does not get them either.
    ///
    /// # Errors
    /// A message for the job's page.
    pub async fn preflight(&self, granted: &[String]) -> Result<(), String> {
        let uuids = self.known_uuids(granted);
        if uuids.is_empty() {
            return Ok(());
        }
        let poll = match tokio::time::timeout(PREFLIGHT_TIMEOUT, self.poll_now()).await {
            Ok(poll) => Some(poll.unwrap_or_else(|| Err("the GPU monitor has stopped".to_owned()))),
            Err(_) => None,
        };
        let issues = find_issues(&uuids, poll.as_ref(), |uuid| self.quarantine_reason(uuid));
        if issues.is_empty() {
            return Ok(());
        }
        let message = describe_issues(&issues);
        let mut failures = Vec::new();
        for issue in issues {
            match issue {
                PreflightIssue::Broken(failure) => failures.push(failure),
                PreflightIssue::InUse(uuid, users) => self.record_foreign_use(&uuid, &users),
                PreflightIssue::AlreadyUnavailable(..) | PreflightIssue::DriverError(..) => {}
            }
        }
        self.quarantine(failures).await;
        Err(message)
    }

    /// Waits until no process of an ended job uses these GPUs. Foreign processes are not waited for. A GPU that is not
    /// free in time is unavailable.
    pub async fn wait_until_free(&self, granted: &[String], is_unrelated: impl Fn(u32) -> bool) {
        let uuids = self.known_uuids(granted);
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        let mut remaining = RemainingProcesses::Unknown;
        while !uuids.is_empty() && Instant::now() < deadline {
            match tokio::time::timeout_at(deadline, self.poll_now()).await {
                // No thread is polling.
                Ok(None) => return,
                Ok(Some(poll)) => remaining = RemainingProcesses::from_poll(&uuids, &poll, &is_unrelated),
                Err(_) => remaining = RemainingProcesses::Unknown,
            }
            if remaining == RemainingProcesses::Free {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.quarantine(remaining.into_failures(&uuids)).await;
    }
}

/// Processes that still use the GPUs of an ended job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RemainingProcesses {
    /// The driver does not report processes.
    Unknown,
    Free,
    /// By GPU.
    Present(Vec<(String, Vec<GpuProcess>)>),
}

impl RemainingProcesses {
    fn from_poll(uuids: &[String], poll: &GpuPoll, is_unrelated: impl Fn(u32) -> bool) -> Self {
        let Ok(snapshots) = poll else { return Self::Unknown };
        let job_gpus = snapshots.iter().filter(|gpu| uuids.contains(&gpu.reading.uuid));
        let remaining_on = |gpu: &GpuSnapshot| {
            let mut users = gpu.processes.clone().unwrap_or_default();
            users.retain(|user| !is_unrelated(user.pid));
            (!users.is_empty()).then(|| (gpu.reading.uuid.clone(), users))
        };
        let remaining: Vec<_> = job_gpus.filter_map(remaining_on).collect();
        if remaining.is_empty() { Self::Free } else { Self::Present(remaining) }
    }

    fn into_failures(self, uuids: &[String]) -> Vec<GpuFailure> {
        let after = format!("{} s after its job ended", RELEASE_TIMEOUT.as_secs());
        match self {
            Self::Free => Vec::new(),
            Self::Unknown => {
                let detail = format!("the driver does not report whether it is free, {after}");
                uuids.iter().map(|uuid| GpuFailure { uuid: uuid.clone(), detail: detail.clone() }).collect()
            }
            Self::Present(remaining) => {
                let detail = |users: &[GpuProcess]| {
                    format!("its memory is still in use by {}, {after}", format_processes(users))
                };
                remaining.into_iter().map(|(uuid, users)| GpuFailure { detail: detail(&users), uuid }).collect()
            }
        }
    }
}

/// The problems of these GPUs; a missing poll means that none finished in time.
fn find_issues(
    uuids: &[String],
    poll: Option<&GpuPoll>,
    quarantined: impl Fn(&str) -> Option<String>,
) -> Vec<PreflightIssue> {
    let find_issue = |uuid: &String| -> Option<PreflightIssue> {
        if let Some(detail) = quarantined(uuid) {
            let unavailable = Unavailable { reason: UnavailableReason::Quarantined, detail };
            return Some(PreflightIssue::AlreadyUnavailable(uuid.clone(), unavailable));
        }
        let broken = |detail: String| Some(PreflightIssue::Broken(GpuFailure { uuid: uuid.clone(), detail }));
        let snapshot = match poll {
            None => return broken(format!("it did not respond within {} s before a job", PREFLIGHT_TIMEOUT.as_secs())),
            Some(Err(error)) => return Some(PreflightIssue::DriverError(uuid.clone(), error.clone())),
            Some(Ok(snapshots)) => snapshots.iter().find(|gpu| gpu.reading.uuid == *uuid),
        };
        let Some(snapshot) = snapshot else { return broken("it was missing before a job".to_owned()) };
        if let Some(GpuFault::Lost(error)) = snapshot.faults.iter().find(|fault| matches!(fault, GpuFault::Lost(_))) {
            return broken(format!("it did not respond before a job: {error}"));
        }
        let users = snapshot.processes.clone().filter(|users| !users.is_empty())?;
        Some(PreflightIssue::InUse(uuid.clone(), users))
    };
    uuids.iter().filter_map(find_issue).collect()
}

fn describe_issues(issues: &[PreflightIssue]) -> String {
    let describe = |issue: &PreflightIssue| match issue {
        PreflightIssue::Broken(GpuFailure { uuid, detail }) => format!("{uuid}: {detail}"),
        PreflightIssue::AlreadyUnavailable(uuid, unavailable) => {
            format!("{uuid} is in quarantine: {}", unavailable.detail)
        }
        PreflightIssue::InUse(uuid, users) => format!("{uuid} is {}", describe_use(users)),
        PreflightIssue::DriverError(uuid, error) => format!("{uuid}: the driver does not respond: {error}"),
    };
    let all: Vec<String> = issues.iter().map(describe).collect();
    format!("the worker's GPUs cannot run a job: {}", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::protocol::gpu::GpuReading;

    #[expect(clippy::unnecessary_wraps, reason = "the tested functions take the result of a poll")]
    fn poll_result(users: Option<&[u32]>, faults: &[GpuFault]) -> GpuPoll {
        let reading = GpuReading { uuid: "GPU-1".to_owned(), ..GpuReading::default() };
        let processes = users.map(|pids| pids.iter().map(|pid| GpuProcess { pid: *pid, name: None }).collect());
        Ok(vec![GpuSnapshot { reading, processes, faults: faults.to_vec() }])
    }

    #[test]
    fn preflight_issues_are_found() {
        let uuids = ["GPU-1".to_owned()];
        let issues = |poll: Option<GpuPoll>| describe_issues(&find_issues(&uuids, poll.as_ref(), |_| None));
        let passes = |poll: GpuPoll| find_issues(&uuids, Some(&poll), |_| None).is_empty();
        assert!(passes(poll_result(Some(&[]), &[])) && passes(poll_result(None, &[GpuFault::Xid(31)])));
        assert!(issues(None).ends_with("GPU-1: it did not respond within 5 s before a job"));
        assert!(issues(Some(Err("mismatch".to_owned()))).ends_with("the driver does not respond: mismatch"));
        assert!(issues(Some(poll_result(Some(&[7]), &[]))).ends_with("GPU-1 is used by process 7"));
        assert!(issues(Some(poll_result(None, &[GpuFault::Lost("gone".to_owned())]))).ends_with("before a job: gone"));
        assert!(issues(Some(Ok(Vec::new()))).ends_with("it was missing before a job"));
        let quarantined = find_issues(&uuids, Some(&poll_result(Some(&[]), &[])), |_| Some("XID 79".to_owned()));
        assert!(describe_issues(&quarantined).ends_with("GPU-1 is in quarantine: XID 79"));
    }

    #[test]
    fn remaining_processes_after_a_job_are_found() {
        let uuids = ["GPU-1".to_owned()];
        let remaining = |poll: GpuPoll| RemainingProcesses::from_poll(&uuids, &poll, |pid| pid == 9);
        assert_eq!(remaining(poll_result(Some(&[]), &[])), RemainingProcesses::Free);
        assert_eq!(remaining(poll_result(None, &[])), RemainingProcesses::Free);
        assert_eq!(remaining(poll_result(Some(&[9]), &[])), RemainingProcesses::Free);
        assert_eq!(
            RemainingProcesses::from_poll(&["GPU-2".to_owned()], &poll_result(Some(&[7]), &[]), |_| false),
            RemainingProcesses::Free
        );
        let details = |processes: RemainingProcesses| {
            processes.into_failures(&uuids).into_iter().map(|failure| failure.detail).collect::<Vec<_>>()
        };
        let present = remaining(poll_result(Some(&[7, 9]), &[]));
        assert_eq!(details(present), ["its memory is still in use by process 7, 30 s after its job ended"]);
        assert_eq!(details(remaining(Err(String::new()))).len(), 1);
    }
}
