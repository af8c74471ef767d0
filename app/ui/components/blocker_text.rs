//! Blockers, and the changes that would help, as sentences in the user's language.

use crate::protocol::gpu::UnavailableReason;
use crate::protocol::jobs::explain::{BlockerCode, BlockerView};
use crate::ui::locales::Language;

pub(crate) fn describe_blocker(language: &Language, blocker: &BlockerView) -> String {
    let words = &language.blockers;
    let (wanted, found) = (parameter_text(blocker.wanted.as_ref()), parameter_text(blocker.found.as_ref()));
    let key = parameter_text(blocker.key.as_ref());
    let gpus = |count: &str| words.gpus.of(count.parse().unwrap_or_default());
    match (blocker.code, &blocker.found) {
        (BlockerCode::WrongTarget, _) if wanted == "local" => words.only_local.to_owned(),
        (BlockerCode::WrongTarget, _) => words.only_remote.to_owned(),
        (BlockerCode::Label, Some(_)) => words.label_differs.with(&[&key, &wanted, &found]),
        (BlockerCode::Label, None) => words.label_missing.with(&[&key, &wanted]),
        (BlockerCode::Accelerator, _) => words.accelerator.with(&[&wanted, &found]),
        (BlockerCode::GpuCount, _) => words.gpu_count.with(&[&gpus(wanted), &found]),
        (BlockerCode::Vram, Some(_)) => words.vram.with(&[&vram_gpus(language, blocker), &wanted, &found]),
        (BlockerCode::Vram, None) => words.vram_unknown.with(&[&vram_gpus(language, blocker), &wanted]),
        (BlockerCode::GpusUnavailable, _) => words.unavailable.with(&[&gpus(wanted), &found]),
        (BlockerCode::Sandbox, _) => words.sandbox.with(&[&wanted, &found]),
        (BlockerCode::Retired, _) => words.retired.to_owned(),
        (BlockerCode::CannotStop, _) => words.cannot_stop.to_owned(),
        (BlockerCode::LacksFiles, _) => words.lacks_files.of(found),
        (BlockerCode::LacksPaths, _) => words.lacks_paths.of(found),
        (BlockerCode::Draining, _) => words.draining.to_owned(),
        (BlockerCode::HostUnhealthy, _) => words.host_unhealthy.of(found),
        (BlockerCode::NeverConnected, _) => words.never_connected.to_owned(),
        (BlockerCode::Offline, _) => words.offline.to_owned(),
        (BlockerCode::Connecting, _) => words.connecting.to_owned(),
        (BlockerCode::UnassignedRun, _) => words.unassigned_run.of(found),
        (BlockerCode::Finishing, _) => words.finishing.to_owned(),
        (BlockerCode::Occupied, _) => words.occupied.of(found.parse().unwrap_or_default()),
        (BlockerCode::GpusBusy, _) => words.gpus_busy.with(&[&gpus(wanted), &found]),
        (BlockerCode::Reserved, _) => words.reserved.of(found),
    }
}

/// Returns the nearest change that would help.
pub(crate) fn suggest_fix(language: &Language, blocker: &BlockerView) -> String {
    let words = &language.blockers;
    let (wanted, found) = (parameter_text(blocker.wanted.as_ref()), parameter_text(blocker.found.as_ref()));
    let key = parameter_text(blocker.key.as_ref());
    match (blocker.code, &blocker.found) {
        (BlockerCode::WrongTarget, _) => words.target_help.to_owned(),
        (BlockerCode::Label, Some(_)) => words.label_differs_help.with(&[&key, &found]),
        (BlockerCode::Label, None) if wanted.contains(['*', '?', '[']) => {
            words.label_missing_help.with(&[&key, &wanted])
        }
        (BlockerCode::Label, None) => words.label_add_help.with(&[&key, &wanted]),
        (BlockerCode::Accelerator, _) => words.accelerator_help.of(found),
        (BlockerCode::GpuCount, _) if found == "0" => words.no_gpu_help.to_owned(),
        (BlockerCode::GpuCount, _) => words.gpu_count_help.of(words.gpus.of(found.parse().unwrap_or_default())),
        (BlockerCode::Vram, Some(_)) => words.vram_help.of(found),
        (BlockerCode::Vram, None) => words.vram_unknown_help.to_owned(),
        (BlockerCode::GpusUnavailable, _) if all_in_use(blocker) => words.in_use_help.to_owned(),
        (BlockerCode::GpusUnavailable, _) => words.unavailable_help.to_owned(),
        (BlockerCode::Sandbox, _) => words.sandbox_help.of(found),
        (BlockerCode::Retired, _) => words.retired_help.to_owned(),
        (BlockerCode::CannotStop, _) => words.cannot_stop_help.to_owned(),
        (BlockerCode::LacksFiles, _) => words.lacks_files_help.to_owned(),
        (BlockerCode::LacksPaths, _) => words.lacks_paths_help.to_owned(),
        (BlockerCode::Draining, _) => words.draining_help.to_owned(),
        (BlockerCode::HostUnhealthy, _) => words.host_unhealthy_help.to_owned(),
        (BlockerCode::NeverConnected | BlockerCode::Offline, _) => words.offline_help.to_owned(),
        (BlockerCode::Connecting, _) => words.connecting_help.to_owned(),
        (BlockerCode::UnassignedRun, _) => words.unassigned_run_help.to_owned(),
        (BlockerCode::Finishing, _) => words.finishing_help.to_owned(),
        (BlockerCode::Occupied | BlockerCode::GpusBusy, _) => words.busy_help.to_owned(),
        (BlockerCode::Reserved, _) => words.reserved_help.to_owned(),
    }
}

/// Returns the reasons of a blocker: why each matching GPU is unavailable, or what the agent reported.
pub(crate) fn blocker_reasons(language: &Language, blocker: &BlockerView) -> Vec<String> {
    let words = &language.gpus;
    let gpu_reasons = blocker.unavailable.iter().map(|gpu| {
        let reason = match gpu.why.reason {
            UnavailableReason::Quarantined => words.quarantined,
            UnavailableReason::InUse => words.in_use,
        };
        let gpu_text = format!("GPU\u{a0}{} · {reason}", gpu.index);
        if gpu.why.detail.is_empty() { gpu_text } else { format!("{gpu_text} · {}", gpu.why.detail) }
    });
    gpu_reasons.chain(blocker.why.clone()).collect()
}

fn parameter_text(parameter: Option<&String>) -> &str {
    parameter.map_or("–", String::as_str)
}

fn all_in_use(blocker: &BlockerView) -> bool {
    let mut reasons = blocker.unavailable.iter().map(|gpu| gpu.why.reason);
    !blocker.unavailable.is_empty() && reasons.all(|reason| reason == UnavailableReason::InUse)
}

fn vram_gpus(language: &Language, blocker: &BlockerView) -> String {
    language.blockers.gpus.of(blocker.gpus.unwrap_or(1).into())
}
