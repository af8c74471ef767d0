use app::domain::explain::{FitStep, FitSummary, JobRequirement};
use app::domain::job::JobTarget;
use app::protocol::jobs::explain::{FitStepView, FitSummaryView, JobRequirementCode};

use crate::service::jobs::explain::{format_gpu_count, format_paths};

pub(in crate::service) fn fit_summary_view(summary: &FitSummary) -> FitSummaryView {
    FitSummaryView {
        text: summary_text(summary),
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

/// The text of the English page (`why` of `app/locales/en.json`).
fn summary_text(summary: &FitSummary) -> String {
    let of_them = |place: usize| if place == 0 { "" } else { " of them" };
    let step = |(place, FitStep { requirement: ask, remaining: left }): (usize, &FitStep)| {
        format!("{left}{} {}", of_them(place), describe_requirement(ask, *left))
    };
    let steps: Vec<String> = summary.steps.iter().enumerate().map(step).collect();
    let workers = if summary.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", summary.workers) };
    format!("{workers}: {}.", steps.join(", "))
}

fn describe_requirement(ask: &JobRequirement, count: usize) -> String {
    let (has, is, takes) = if count == 1 { ("has", "is", "takes") } else { ("have", "are", "take") };
    match ask {
        JobRequirement::Target(JobTarget::Local) => format!("{is} this server's own"),
        JobRequirement::Target(JobTarget::Worker | JobTarget::Auto) => format!("{is} remote"),
        JobRequirement::Label { key, wanted } => format!("{has} {key}={wanted}"),
        JobRequirement::HasConnected => format!("{has} connected before"),
        JobRequirement::Accelerator(kind) => format!("{has} the accelerator {kind}"),
        JobRequirement::Gpus(count) => format!("{has} {}", format_gpu_count(*count)),
        JobRequirement::Vram { gb, gpus: count } => format!("{has} {} with {gb} GB", format_gpu_count(*count)),
        JobRequirement::Sandbox(level) => format!("{has} a sandbox of level {}", level.as_str()),
        JobRequirement::CurrentAgent => format!("{has} a new enough agent"),
        JobRequirement::Paths(names) => format!("{has} a directory for {}", format_paths(names)),
        JobRequirement::Ready => format!("{is} online and {takes} new jobs"),
        JobRequirement::Free => format!("{is} free"),
    }
}
