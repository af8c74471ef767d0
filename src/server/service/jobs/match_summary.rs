//! Views of summaries.

use app::domain::explain::{FitStep, FitSummary, JobRequirement};
use app::protocol::jobs::explain::{FitStepView, FitSummaryView, JobRequirementCode};

use crate::service::jobs::explain::format_paths;

/// The view without its sentence, which is in the client's language (`http/jobs/explain.rs`).
pub(in crate::service) fn fit_summary_view(summary: &FitSummary) -> FitSummaryView {
    FitSummaryView {
        text: String::new(),
        workers: summary.workers as u64,
        steps: summary.steps.iter().map(step_view).collect(),
    }
}

fn step_view(FitStep { requirement: ask, remaining: left }: &FitStep) -> FitStepView {
    let plain = |ask| FitStepView { ask, key: None, wanted: None, gpus: None, left: *left as u64 };
    let wanting = |ask, wanted: String| FitStepView { wanted: Some(wanted), ..plain(ask) };
    match ask {
        JobRequirement::Target(target) => wanting(JobRequirementCode::Target, target.as_str().to_owned()),
        JobRequirement::Label { key, wanted } => {
            FitStepView { key: Some(key.clone()), ..wanting(JobRequirementCode::Label, wanted.clone()) }
        }
        JobRequirement::HasConnected => plain(JobRequirementCode::HasConnected),
        JobRequirement::Accelerator(kind) => wanting(JobRequirementCode::Accelerator, kind.clone()),
        JobRequirement::Gpus(count) => wanting(JobRequirementCode::GpuCount, count.to_string()),
        JobRequirement::Vram { gb, gpus } => {
            FitStepView { gpus: Some(*gpus), ..wanting(JobRequirementCode::Vram, gb.to_string()) }
        }
        JobRequirement::Sandbox(level) => wanting(JobRequirementCode::Sandbox, level.as_str().to_owned()),
        JobRequirement::CurrentAgent => plain(JobRequirementCode::NewerAgent),
        JobRequirement::Paths(names) => wanting(JobRequirementCode::Paths, format_paths(names)),
        JobRequirement::Ready => plain(JobRequirementCode::Ready),
        JobRequirement::Free => plain(JobRequirementCode::Free),
    }
}
