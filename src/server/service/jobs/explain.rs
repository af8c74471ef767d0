//! Views of explanations: codes with parameters, and the same as text.

use app::domain::explain::{self, ExplainVerdict, Explanation, WorkerExplanation};
use app::domain::gpu::{Unavailable, UnavailableReason};
use app::domain::ids::JobId;
use app::domain::job::{Job, JobTarget};
use app::domain::matching::Blocker;
use app::domain::plan::ReachedLimit;
use app::domain::sandbox::SandboxLevel;
use app::protocol::gpus::gpu;
use app::protocol::jobs::explain::{
    BlockerCode, BlockerView, ExplanationView, ReachedLimitView, UnavailableGpuView, VerdictCode, WorkerExplanationView,
};
use app::protocol::jobs::submit::{SubmitJob, SubmitPreviewResponse};

use crate::service::access::Principal;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::jobs::match_summary;
use crate::store::cache::state::FleetState;

impl JobService {
    /// Explains why a job waits.
    pub async fn explain(&self, id: &JobId) -> Result<ExplanationView, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let explanation = tx.with_state(|known| self.explain_job(known, &job)).await?;
        Ok(explanation_view(&job, explanation))
    }

    /// Validates and explains a submit without submitting.
    pub async fn preview(
        &self,
        principal: &Principal,
        submit: &SubmitJob,
    ) -> Result<SubmitPreviewResponse, ServiceError> {
        let job = self.draft_job(principal, submit).await?;
        let mut tx = self.context.read().await?;
        let explanation = explanation_view(&job, tx.with_state(|known| self.explain_job(known, &job)).await?);
        let allocated_worker_id = explanation.worker_id.clone();
        let queue_position = if allocated_worker_id.is_none() { Some(tx.queue_position(&job).await?) } else { None };
        Ok(SubmitPreviewResponse { success: true, dry_run: true, allocated_worker_id, queue_position, explanation })
    }

    fn explain_job(&self, fleet_state: &FleetState, job: &Job) -> Explanation {
        explain::explain(
            job,
            fleet_state.waiting_jobs(),
            self.context.policy.planner_fleet(fleet_state),
            self.context.now(),
        )
    }
}

fn explanation_view(job: &Job, explanation: Explanation) -> ExplanationView {
    let (text, summary) =
        (explanation_text(job, &explanation), explanation.summary.as_ref().map(match_summary::fit_summary_view));
    let limit = match &explanation.verdict {
        ExplainVerdict::LimitReached(ReachedLimit::Total(jobs)) => {
            Some(ReachedLimitView { jobs: *jobs, per_user: false })
        }
        ExplainVerdict::LimitReached(ReachedLimit::PerUser(jobs)) => {
            Some(ReachedLimitView { jobs: *jobs, per_user: true })
        }
        _ => None,
    };
    let (verdict, worker_id, until) = match explanation.verdict {
        ExplainVerdict::NotWaiting => (VerdictCode::NotWaiting, None, None),
        ExplainVerdict::Fits { worker } => (VerdictCode::Fits, Some(worker), None),
        ExplainVerdict::BackOff { until } => (VerdictCode::BackOff, None, Some(until)),
        ExplainVerdict::Held { until } => (VerdictCode::Held, None, Some(until)),
        ExplainVerdict::LimitReached(_) => (VerdictCode::Limited, None, None),
        ExplainVerdict::Busy => (VerdictCode::Busy, None, None),
        ExplainVerdict::WorkerUnavailable => (VerdictCode::WorkerUnavailable, None, None),
        ExplainVerdict::Unsatisfiable => (VerdictCode::Unsatisfiable, None, None),
        ExplainVerdict::NoLocalWorker => (VerdictCode::NoLocalWorker, None, None),
        ExplainVerdict::NoWorkers => (VerdictCode::NoWorkers, None, None),
    };
    let workers = explanation.workers.into_iter().map(worker_view).collect();
    ExplanationView { verdict, text, worker_id, until, limit, summary, workers }
}

/// Why no worker matches a job with the target `local`.
pub(in crate::service) const NO_LOCAL_WORKER: &str = "This server runs no jobs itself: it needs a GPU and a trainer, or start it with \
                                          --local on; or submit with target auto.";

fn explanation_text(job: &Job, explanation: &Explanation) -> String {
    let nearest = explanation.workers.first();
    let name = nearest.map_or("", |answer| answer.name.as_str());
    let first = nearest.and_then(|answer| answer.blockers.first()).map(view_of_blocker);
    let (why, change) = first.map_or_else(Default::default, |view| (view.text, view.change));
    match &explanation.verdict {
        ExplainVerdict::NotWaiting => format!("The job is not queued: it is {}.", job.state.as_str()),
        ExplainVerdict::Fits { worker } => {
            let name = explanation.workers.iter().find(|answer| answer.worker == *worker);
            format!("Can start now on {}.", name.map_or(worker.as_str(), |answer| answer.name.as_str()))
        }
        ExplainVerdict::BackOff { until } => format!("The last attempt was lost. Next try at {until}."),
        ExplainVerdict::Held { until } => format!(
            "Exclusive job: the previous attempt may still be running on a disconnected worker. Earliest start: {until}."
        ),
        ExplainVerdict::LimitReached(ReachedLimit::Total(limit)) => {
            format!("Limit of {limit} running jobs reached.")
        }
        ExplainVerdict::LimitReached(ReachedLimit::PerUser(limit)) => {
            format!("Per-user limit reached: {} already has {limit} running jobs.", job.submitted_by)
        }
        ExplainVerdict::Busy => {
            format!("No idle workers: all matching workers are busy. Closest match is {name}: {why} {change}")
        }
        ExplainVerdict::WorkerUnavailable => {
            format!(
                "No idle workers: matching workers are offline, draining or unhealthy. Closest match is {name}: {why} {change}"
            )
        }
        ExplainVerdict::Unsatisfiable => {
            let what = match nearest.and_then(|answer| answer.blockers.first()) {
                Some(Blocker::Gpus { .. } | Blocker::Vram { .. } | Blocker::Accelerator { .. }) => {
                    "GPU requirements not met"
                }
                _ => "No idle workers that match",
            };
            format!("{what}: no worker meets the requirements. Closest match is {name}: {why} {change}")
        }
        ExplainVerdict::NoLocalWorker => NO_LOCAL_WORKER.to_owned(),
        ExplainVerdict::NoWorkers => {
            "No idle workers: no workers registered. Create one, and start its agent.".to_owned()
        }
    }
}

fn worker_view(answer: WorkerExplanation) -> WorkerExplanationView {
    WorkerExplanationView {
        worker_id: answer.worker,
        name: answer.name,
        fits: answer.blockers.is_empty(),
        matches: !answer.blockers.iter().any(Blocker::is_mismatch),
        blockers: answer.blockers.iter().map(view_of_blocker).collect(),
    }
}

/// Builds a view from code, text and nearest change; callers add parameters.
fn blocker_view(code: BlockerCode, text: impl Into<String>, change: impl Into<String>) -> BlockerView {
    let (text, change, unavailable) = (text.into(), change.into(), Vec::new());
    BlockerView { code, key: None, wanted: None, found: None, why: None, gpus: None, unavailable, text, change }
}

fn sandbox(wanted: SandboxLevel, found: SandboxLevel, why: Option<&str>) -> BlockerView {
    let (wanted, found) = (wanted.as_str(), found.as_str());
    let because = why.map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
    BlockerView {
        wanted: Some(wanted.to_owned()),
        found: Some(found.to_owned()),
        why: why.map(str::to_owned),
        ..blocker_view(
            BlockerCode::Sandbox,
            format!("The job requires sandbox level {wanted}, and this worker has at most {found}{because}."),
            format!("Use {found}, or run simpletuner-worker doctor on the host to see why it has no more."),
        )
    }
}

/// A blocker's code and parameters, with a text and the nearest change that would help.
fn view_of_blocker(blocker: &Blocker) -> BlockerView {
    let found = |found: String, view| BlockerView { found: Some(found), ..view };
    match blocker {
        Blocker::WrongTarget { wanted } => wrong_target(*wanted),
        Blocker::Label { key, wanted, found } => label(key, wanted, found.as_deref()),
        Blocker::Accelerator { wanted, found } => accelerator(wanted, found),
        Blocker::Gpus { wanted, found } => gpu_count(*wanted, *found),
        Blocker::Vram { wanted_gb, gpus, found_gb } => vram(*wanted_gb, *gpus, *found_gb),
        Blocker::GpusUnavailable { wanted, left, why } => gpus_unavailable(*wanted, *left, why),
        Blocker::Sandbox { wanted, found, why } => sandbox(*wanted, *found, why.as_deref()),
        Blocker::Retired => {
            blocker_view(BlockerCode::Retired, "The ephemeral worker has run its job.", "Start another worker.")
        }
        Blocker::CannotSelfStop => blocker_view(
            BlockerCode::CannotStop,
            "The job is exclusive, and the older agent cannot stop it when it loses contact.",
            "Upgrade simpletuner-worker on the host, or submit without exclusive.",
        ),
        Blocker::LacksFiles { files } => lacks_files(files.join(", ")),
        Blocker::LacksPaths { names } => lacks_paths(format_paths(names)),
        Blocker::Draining => {
            blocker_view(BlockerCode::Draining, "Draining: accepts no new jobs.", "Resume the worker.")
        }
        Blocker::HostUnhealthy { why } => found(
            why.clone(),
            blocker_view(
                BlockerCode::HostUnhealthy,
                format!("The agent accepts no new jobs: {}.", why.trim_end_matches('.')),
                "Fix the host; the agent then accepts jobs again.",
            ),
        ),
        Blocker::NeverConnected => blocker_view(
            BlockerCode::NeverConnected,
            "The agent has never connected, so its GPUs are unknown.",
            "Start the agent on the host.",
        ),
        Blocker::Offline => blocker_view(BlockerCode::Offline, "The agent is offline.", "Start the agent on the host."),
        Blocker::Connecting => blocker_view(
            BlockerCode::Connecting,
            "The agent has registered and is connecting.",
            "Wait until it is connected; otherwise it is offline after the heartbeat timeout.",
        ),
        Blocker::UnassignedRun { job } => found(
            job.to_string(),
            blocker_view(
                BlockerCode::UnassignedRun,
                format!("The agent runs {job}, which is not assigned to it; stop requested."),
                "Restart the agent if this persists.",
            ),
        ),
        Blocker::Finishing => {
            blocker_view(BlockerCode::Finishing, "The agent is finishing its last job.", "Wait a few seconds.")
        }
        Blocker::AtCapacity { max_jobs } => found(max_jobs.to_string(), occupied(*max_jobs)),
        Blocker::GpusBusy { wanted, free } => gpus_busy(*wanted, *free),
        Blocker::Reserved { job } => found(
            job.to_string(),
            blocker_view(
                BlockerCode::Reserved,
                format!("Reserved for {job}, which has waited too long."),
                "Wait until that job has run, or raise the priority to go first.",
            ),
        ),
    }
}

fn accelerator(wanted: &str, found: &str) -> BlockerView {
    BlockerView {
        wanted: Some(wanted.to_owned()),
        found: Some(found.to_owned()),
        ..blocker_view(
            BlockerCode::Accelerator,
            format!("The job requires {wanted}, and this worker has {found}."),
            format!("Request {found}, or omit accelerator_type."),
        )
    }
}

fn lacks_files(files: String) -> BlockerView {
    let text =
        format!("The older agent gets only config.json and the data loader. This configuration also needs {files}.");
    let change = "Upgrade simpletuner-worker on the host.";
    BlockerView { found: Some(files), ..blocker_view(BlockerCode::LacksFiles, text, change) }
}

fn lacks_paths(names: String) -> BlockerView {
    let text = format!("The worker has no directory for {names}, which the configuration requires.");
    let change = "Start the agent with --data-root DIR, or --path NAME=DIR.";
    BlockerView { found: Some(names), ..blocker_view(BlockerCode::LacksPaths, text, change) }
}

fn occupied(max_jobs: u32) -> BlockerView {
    let text = match max_jobs {
        1 => "Busy: it runs one job at a time.".to_owned(),
        _ => format!("Busy: it runs {max_jobs} jobs, its maximum."),
    };
    blocker_view(BlockerCode::Occupied, text, "Wait until one of its jobs ends.")
}

fn gpus_busy(wanted: u32, free: u32) -> BlockerView {
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(free.to_string()),
        ..blocker_view(
            BlockerCode::GpusBusy,
            format!("The job requires {}, and {free} matching ones are available.", format_gpu_count(wanted)),
            "Wait until jobs on the worker end.",
        )
    }
}

fn wrong_target(wanted: JobTarget) -> BlockerView {
    let text = match wanted {
        JobTarget::Local => "The target is local, and this is a remote worker.",
        JobTarget::Worker | JobTarget::Auto => "The target is worker, and this is the orchestrator's own machine.",
    };
    let change = "Use the target auto.".to_owned();
    BlockerView {
        wanted: Some(wanted.as_str().to_owned()),
        ..blocker_view(BlockerCode::WrongTarget, text.to_owned(), change)
    }
}

fn label(key: &str, wanted: &str, found: Option<&str>) -> BlockerView {
    let text = match found {
        Some(value) => format!("The job requires {key}={wanted}, and this worker has {key}={value}."),
        None => format!("The job requires {key}={wanted}, and this worker has no label {key}."),
    };
    let literal = !wanted.contains(['*', '?', '[']);
    let change = match (found, literal) {
        (Some(value), _) => format!("Request {key}={value}, or change the label of the worker."),
        (None, true) => format!("Add the label {key}={wanted} to the worker, or remove it from the job."),
        (None, false) => format!("Add a matching label {key} to the worker, or remove it from the job."),
    };
    BlockerView {
        key: Some(key.to_owned()),
        wanted: Some(wanted.to_owned()),
        found: found.map(str::to_owned),
        ..blocker_view(BlockerCode::Label, text, change)
    }
}

fn gpu_count(wanted: u32, found: u32) -> BlockerView {
    let change = match found {
        0 => "Request no GPU, or add a worker with GPUs.".to_owned(),
        _ => format!(
            "Request at most {}: set gpu_count, or --num_processes in the configuration.",
            format_gpu_count(found)
        ),
    };
    let text = format!("The job requires {}, and this worker has {found}.", format_gpu_count(wanted));
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(found.to_string()),
        ..blocker_view(BlockerCode::GpuCount, text, change)
    }
}

fn vram(wanted_gb: f64, count: u32, found_gb: Option<f64>) -> BlockerView {
    let (has, change) = match found_gb {
        Some(gb) => (format!("has at most {gb} GB on that many"), format!("Request at most {gb} GB with min_vram_gb.")),
        None => (
            "does not report the memory of its GPUs".to_owned(),
            "Omit min_vram_gb, or start the agent with --gpu-vram-gb.".to_owned(),
        ),
    };
    let text = format!("The job requires {} with {wanted_gb} GB each, and this worker {has}.", format_gpu_count(count));
    BlockerView {
        wanted: Some(wanted_gb.to_string()),
        found: found_gb.map(|gb| gb.to_string()),
        gpus: Some(count),
        ..blocker_view(BlockerCode::Vram, text, change)
    }
}

/// The maximum number of GPUs whose reasons are listed.
const MAX_GPUS_LISTED: usize = 4;

fn gpus_unavailable(wanted: u32, left: u32, why: &[(u32, Unavailable)]) -> BlockerView {
    let sentence = format!("The job requires {}, and {left} matching ones are usable.", format_gpu_count(wanted));
    let told = why
        .iter()
        .take(MAX_GPUS_LISTED)
        .map(|(number, unavailable)| format!("GPU {number} is {}.", unavailable_words(unavailable)));
    let more = why.len().saturating_sub(MAX_GPUS_LISTED);
    let more = (more > 0).then(|| format!("The same applies to {more} more."));
    let text = std::iter::once(sentence).chain(told).chain(more).collect::<Vec<_>>().join(" ");
    let is_in_use = |(_, unavailable): &(u32, Unavailable)| unavailable.reason == UnavailableReason::InUse;
    let change = match (why.iter().any(is_in_use), why.iter().all(is_in_use)) {
        (_, true) => "End the process that uses the GPU on the host; it then becomes available automatically.",
        (true, false) => {
            "End the process that uses a GPU, and fix the quarantined one; both then become available automatically."
        }
        (false, _) => "Check the GPU on the host; it becomes available automatically when it works again.",
    };
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(left.to_string()),
        unavailable: why.iter().map(unavailable_gpu).collect(),
        ..blocker_view(BlockerCode::GpusUnavailable, text, change.to_owned())
    }
}

fn unavailable_gpu((index, unavailable): &(u32, Unavailable)) -> UnavailableGpuView {
    let reason = match unavailable.reason {
        UnavailableReason::Quarantined => gpu::UnavailableReason::Quarantined,
        UnavailableReason::InUse => gpu::UnavailableReason::InUse,
    };
    UnavailableGpuView { index: *index, why: gpu::Unavailable { reason, detail: unavailable.detail.clone() } }
}

fn unavailable_words(unavailable: &Unavailable) -> String {
    let detail = unavailable.detail.trim().trim_end_matches('.');
    // Agents report `used by process 7`, or only the user.
    let detail = detail.strip_prefix("used by ").unwrap_or(detail);
    match (unavailable.reason, detail) {
        (UnavailableReason::InUse, "") => "in use by a process that belongs to no job".to_owned(),
        (UnavailableReason::InUse, process) => format!("in use by {process}"),
        (UnavailableReason::Quarantined, "") => "quarantined".to_owned(),
        (UnavailableReason::Quarantined, error) => format!("quarantined: {error}"),
    }
}

/// Formats names of directories as configurations write them.
pub(in crate::service) fn format_paths(names: &[String]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

pub(in crate::service) fn format_gpu_count(count: u32) -> String {
    if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") }
}
