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

fn step_view(FitStep { requirement, remaining }: &FitStep) -> FitStepView {
    let plain =
        |code| FitStepView { requirement: code, key: None, wanted: None, gpus: None, remaining: *remaining as u64 };
    let with_value = |code, wanted: String| FitStepView { wanted: Some(wanted), ..plain(code) };
    match requirement {
        JobRequirement::Target(target) => with_value(JobRequirementCode::Target, target.as_str().to_owned()),
        JobRequirement::Label { key, wanted } => {
            FitStepView { key: Some(key.clone()), ..with_value(JobRequirementCode::Label, wanted.clone()) }
        }
        JobRequirement::HasConnected => plain(JobRequirementCode::HasConnected),
        JobRequirement::Accelerator(kind) => with_value(JobRequirementCode::Accelerator, kind.clone()),
        JobRequirement::Gpus(count) => with_value(JobRequirementCode::GpuCount, count.to_string()),
        JobRequirement::Vram { gb, gpus } => {
            FitStepView { gpus: Some(*gpus), ..with_value(JobRequirementCode::Vram, gb.to_string()) }
        }
        JobRequirement::Sandbox(level) => with_value(JobRequirementCode::Sandbox, level.as_str().to_owned()),
        JobRequirement::CurrentAgent => plain(JobRequirementCode::NewerAgent),
        JobRequirement::Paths(names) => with_value(JobRequirementCode::Paths, format_paths(names)),
        JobRequirement::Ready => plain(JobRequirementCode::Ready),
        JobRequirement::Free => plain(JobRequirementCode::Free),
    }
}
