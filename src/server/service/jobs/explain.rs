//! Views of explanations: codes with parameters. Their sentences are in the client's language (`http/jobs/explain.rs`).

use std::fmt::Display;

use app::domain::explain::{self, ExplainVerdict, Explanation, UnlistedWorkers, WorkerExplanation};
use app::domain::gpu::{Unavailable, UnavailableReason};
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::matching::Blocker;
use app::domain::plan::ReachedLimit;
use app::domain::shares::{ReachedShareLimit, ShareLevel, ShareLimit};
use app::protocol::gpu;
use app::protocol::jobs::SubmitJob;
use app::protocol::jobs::explain::{
    BlockerCode, BlockerView, ExplanationView, ReachedLimitView, ReachedShareLimitView, ShareLimitKind,
    UnavailableGpuView, UnlistedWorkersView, VerdictCode, WorkerExplanationView,
};
use app::protocol::jobs::submit::SubmitPreviewResponse;

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
        Ok(tx.with_state(|fleet_state| self.explain_job(fleet_state, &job)).await?)
    }

    /// Validates and explains a submit without submitting.
    pub async fn preview(
        &self,
        principal: &Principal,
        submit: &SubmitJob,
    ) -> Result<SubmitPreviewResponse, ServiceError> {
        let job = self.draft_job(principal, submit).await?;
        let explain = |fleet_state: &FleetState| {
            let explanation = self.explain_job(fleet_state, &job);
            let positions = || fleet_state.queue_positions(&[&job], self.context.now());
            let queue_position = if explanation.worker_id.is_none() { positions().remove(&job.id) } else { None };
            (explanation, queue_position)
        };
        let (explanation, queue_position) = self.context.read().await?.with_state(explain).await?;
        let allocated_worker_id = explanation.worker_id.clone();
        Ok(SubmitPreviewResponse { success: true, dry_run: true, allocated_worker_id, queue_position, explanation })
    }

    fn explain_job(&self, fleet_state: &FleetState, job: &Job) -> ExplanationView {
        let now = self.context.now();
        let fleet = self.context.policy.planner_fleet(fleet_state, now);
        explanation_view(job, explain::explain(job, fleet_state.queued_jobs(), fleet, now))
    }
}

fn limit_view(limit: ReachedLimit, team: &str) -> ReachedLimitView {
    match limit {
        ReachedLimit::Total(jobs) => ReachedLimitView { jobs, per_user: false, share: None },
        ReachedLimit::PerUser(jobs) => ReachedLimitView { jobs, per_user: true, share: None },
        ReachedLimit::Share(ReachedShareLimit { level, limit }) => {
            let (kind, max) = match limit {
                ShareLimit::Gpus(max) => (ShareLimitKind::Gpus, max),
                ShareLimit::GpuHours(max) => (ShareLimitKind::GpuHours, max),
                ShareLimit::RunningJobs(max) => (ShareLimitKind::RunningJobs, max),
            };
            let is_member = level == ShareLevel::Member;
            let share = ReachedShareLimitView { team: team.to_owned(), is_member, kind, max };
            let jobs = if kind == ShareLimitKind::RunningJobs { max } else { 0 };
            ReachedLimitView { jobs, per_user: is_member, share: Some(share) }
        }
    }
}

fn explanation_view(job: &Job, explanation: Explanation<'_>) -> ExplanationView {
    let summary = explanation.summary.as_ref().map(match_summary::fit_summary_view);
    let limit = match &explanation.verdict {
        ExplainVerdict::LimitReached(limit) => Some(limit_view(*limit, &job.spec.team)),
        _ => None,
    };
    let (verdict, worker_id, until) = match explanation.verdict {
        ExplainVerdict::NotWaiting => (VerdictCode::NotWaiting, None, None),
        ExplainVerdict::Fits { worker } => (VerdictCode::Fits, Some(worker), None),
        ExplainVerdict::BackOff { until } => (VerdictCode::BackOff, None, Some(until)),
        ExplainVerdict::Held { until } => (VerdictCode::Held, None, Some(until)),
        ExplainVerdict::Preempting { worker, until } => (VerdictCode::Preempting, Some(worker), Some(until)),
        ExplainVerdict::LimitReached(_) => (VerdictCode::Limited, None, None),
        ExplainVerdict::Busy => (VerdictCode::Busy, None, None),
        ExplainVerdict::WorkerUnavailable => (VerdictCode::WorkerUnavailable, None, None),
        ExplainVerdict::Unsatisfiable => (VerdictCode::Unsatisfiable, None, None),
        ExplainVerdict::NoLocalWorker => (VerdictCode::NoLocalWorker, None, None),
        ExplainVerdict::NoWorkers => (VerdictCode::NoWorkers, None, None),
    };
    let workers = explanation.workers.iter().map(worker_view).collect();
    let unlisted = explanation.unlisted.iter().map(unlisted_view).collect();
    ExplanationView { verdict, text: String::new(), worker_id, until, limit, summary, workers, unlisted }
}

fn worker_view(explanation: &WorkerExplanation<'_>) -> WorkerExplanationView {
    WorkerExplanationView {
        worker_id: explanation.worker.clone(),
        name: explanation.name.to_owned(),
        fits: explanation.blockers.is_empty(),
        matches: !explanation.blockers.iter().any(Blocker::is_mismatch),
        blockers: explanation.blockers.iter().map(view_of_blocker).collect(),
    }
}

fn unlisted_view(UnlistedWorkers { blocker, workers }: &UnlistedWorkers<'_>) -> UnlistedWorkersView {
    let code = blocker.as_ref().map(|blocker| view_of_blocker(blocker).code);
    UnlistedWorkersView { code, workers: *workers as u64 }
}

/// A blocker without parameters.
fn blocker_view(code: BlockerCode) -> BlockerView {
    let (text, change, unavailable) = (String::new(), String::new(), Vec::new());
    BlockerView { code, key: None, wanted: None, found: None, why: None, gpus: None, unavailable, text, change }
}

/// A blocker's code and parameters.
fn view_of_blocker(blocker: &Blocker<'_>) -> BlockerView {
    let found = |found: String, code| BlockerView { found: Some(found), ..blocker_view(code) };
    let differs = |wanted: String, actual: String, code| BlockerView { wanted: Some(wanted), ..found(actual, code) };
    match blocker {
        Blocker::WrongTarget { wanted } => {
            BlockerView { wanted: Some(wanted.as_str().to_owned()), ..blocker_view(BlockerCode::WrongTarget) }
        }
        Blocker::Label { key, wanted, found } => BlockerView {
            key: Some((*key).to_owned()),
            wanted: Some((*wanted).to_owned()),
            found: found.map(str::to_owned),
            ..blocker_view(BlockerCode::Label)
        },
        Blocker::Accelerator { wanted, found } => {
            differs((*wanted).to_owned(), (*found).to_owned(), BlockerCode::Accelerator)
        }
        Blocker::Gpus { wanted, found } => differs(wanted.to_string(), found.to_string(), BlockerCode::GpuCount),
        Blocker::Vram { wanted_gb, gpus, found_gb } => BlockerView {
            wanted: Some(wanted_gb.to_string()),
            found: found_gb.map(|gb| gb.to_string()),
            gpus: Some(*gpus),
            ..blocker_view(BlockerCode::Vram)
        },
        Blocker::GpusUnavailable { wanted, left, why } => BlockerView {
            unavailable: why.iter().map(|(index, unavailable)| unavailable_gpu(*index, unavailable)).collect(),
            ..differs(wanted.to_string(), left.to_string(), BlockerCode::GpusUnavailable)
        },
        Blocker::Sandbox { wanted, found, why } => BlockerView {
            why: why.map(str::to_owned),
            ..differs(wanted.as_str().to_owned(), found.as_str().to_owned(), BlockerCode::Sandbox)
        },
        Blocker::Retired => blocker_view(BlockerCode::Retired),
        Blocker::CannotSelfStop => blocker_view(BlockerCode::CannotStop),
        Blocker::LacksFiles { files } => found(files.join(", "), BlockerCode::LacksFiles),
        Blocker::LacksPaths { names } => found(format_paths(names), BlockerCode::LacksPaths),
        Blocker::Draining => blocker_view(BlockerCode::Draining),
        Blocker::HostUnhealthy { why } => found((*why).to_owned(), BlockerCode::HostUnhealthy),
        Blocker::NeverConnected => blocker_view(BlockerCode::NeverConnected),
        Blocker::Offline => blocker_view(BlockerCode::Offline),
        Blocker::Connecting => blocker_view(BlockerCode::Connecting),
        Blocker::UnassignedRun { job } => found(job.to_string(), BlockerCode::UnassignedRun),
        Blocker::Finishing => blocker_view(BlockerCode::Finishing),
        Blocker::AtCapacity { max_jobs } => found(max_jobs.to_string(), BlockerCode::Occupied),
        Blocker::GpusBusy { wanted, free } => differs(wanted.to_string(), free.to_string(), BlockerCode::GpusBusy),
        Blocker::Reserved { job } => found(job.to_string(), BlockerCode::Reserved),
    }
}

fn unavailable_gpu(index: u32, unavailable: &Unavailable) -> UnavailableGpuView {
    let reason = match unavailable.reason {
        UnavailableReason::Quarantined => gpu::UnavailableReason::Quarantined,
        UnavailableReason::InUse => gpu::UnavailableReason::InUse,
    };
    UnavailableGpuView { index, why: gpu::Unavailable { reason, detail: unavailable.detail.clone() } }
}

/// Formats names of directories as configurations write them.
pub(in crate::service) fn format_paths(names: &[impl Display]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}
