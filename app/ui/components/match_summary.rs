//! How many workers meet the requirements of a job, in the user's language: "8 workers: 3 have site=graz, 0 of them
//! have 16 GPUs."

use crate::protocol::jobs::explain::{FitStepView, FitSummaryView, JobRequirementCode};
use crate::ui::locales::Language;

/// Returns a summary as a sentence.
pub(crate) fn summary_text(language: &Language, summary: &FitSummaryView) -> String {
    let words = &language.blockers;
    let steps = summary.steps.iter().enumerate().map(|(index, step)| describe_step(language, step, index == 0));
    let steps: Vec<_> = steps.collect();
    words.summary.with(&[&words.workers.of(summary.workers), &steps.join(words.and_of_them)])
}

/// Describes how many workers are left: of all in the first step, else of those left by the step before.
fn describe_step(language: &Language, step: &FitStepView, is_first: bool) -> String {
    let words = &language.blockers;
    let number = language.format_integer(step.remaining);
    let workers = if is_first { words.some.of(number) } else { words.of_them.of(number) };
    let wanted = step.wanted.as_deref().unwrap_or("–");
    let gpus = |count: u64| words.gpus.of(count);
    let has_feature = |feature: &str| words.left_has.about(step.remaining, &workers, feature);
    let state = match step.requirement {
        JobRequirementCode::Target if wanted == "local" => words.left_own,
        JobRequirementCode::Target => words.left_remote,
        JobRequirementCode::HasConnected => words.left_connected,
        JobRequirementCode::Ready => words.left_ready,
        JobRequirementCode::Free => words.left_free,
        JobRequirementCode::Label => return has_feature(&format!("{}={wanted}", step.key.as_deref().unwrap_or("–"))),
        JobRequirementCode::Accelerator => return has_feature(&words.asked_accelerator.of(wanted)),
        JobRequirementCode::GpuCount => return has_feature(&gpus(wanted.parse().unwrap_or_default())),
        JobRequirementCode::Vram => {
            return has_feature(&words.asked_vram.with(&[&gpus(step.gpus.unwrap_or(1).into()), &wanted]));
        }
        JobRequirementCode::Sandbox => return has_feature(&words.asked_sandbox.of(wanted)),
        JobRequirementCode::Paths => return has_feature(&words.asked_paths.of(wanted)),
        JobRequirementCode::NewerAgent => return has_feature(words.asked_agent),
    };
    state.about(step.remaining, &workers, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::prefs::Locale;

    fn step(requirement: JobRequirementCode, wanted: &str, remaining: u64) -> FitStepView {
        let key = (requirement == JobRequirementCode::Label).then(|| "site".to_owned());
        let gpus = (requirement == JobRequirementCode::Vram).then_some(2);
        FitStepView { requirement, key, wanted: (!wanted.is_empty()).then(|| wanted.to_owned()), gpus, remaining }
    }

    fn summary(workers: u64, steps: &[FitStepView]) -> FitSummaryView {
        FitSummaryView { text: String::new(), workers, steps: steps.to_vec() }
    }

    #[test]
    fn a_summary_says_how_many_workers_are_left_and_what_rejects_all() {
        let summary =
            summary(8, &[step(JobRequirementCode::Label, "graz", 3), step(JobRequirementCode::GpuCount, "16", 0)]);
        let sentences = Locale::ALL.map(|locale| summary_text(Language::of(locale), &summary));
        assert_eq!(
            sentences,
            [
                "8 workers: 3 have site=graz, 0 of them have 16 GPUs.",
                "8 workers: 3 tienen site=graz, 0 de ellos tienen 16 GPU.",
                "8 वर्कर: 3 के पास site=graz है, उनमें से 0 के पास 16 GPU है।",
                "ワーカー8台: 3台が site=graz に該当、そのうち0台が GPU 16基 に該当。",
                "8 workers: 3 têm site=graz, 0 deles tem 16 GPUs.",
                "8 个 Worker：3 个有 site=graz，其中 0 个有 16 个 GPU。",
            ]
        );
    }

    #[test]
    fn each_requirement_has_a_sentence() {
        let rows = [
            (step(JobRequirementCode::Target, "local", 1), "1 is this server's own"),
            (step(JobRequirementCode::Target, "worker", 2), "2 are remote"),
            (step(JobRequirementCode::HasConnected, "", 1), "1 has connected before"),
            (step(JobRequirementCode::Accelerator, "rocm", 0), "0 have the accelerator rocm"),
            (step(JobRequirementCode::Vram, "80", 1), "1 has 2 GPUs with 80 GB"),
            (step(JobRequirementCode::Sandbox, "full", 0), "0 have a sandbox of level full"),
            (step(JobRequirementCode::NewerAgent, "", 1), "1 has a new enough agent"),
            (step(JobRequirementCode::Paths, "{data_root}", 0), "0 have a directory for {data_root}"),
            (step(JobRequirementCode::Ready, "", 1), "1 is online and takes new jobs"),
            (step(JobRequirementCode::Free, "", 0), "0 are free"),
        ];
        for (step, words) in rows {
            let text = summary_text(Language::of(Locale::En), &summary(1, &[step]));
            assert_eq!(text, format!("1 worker: {words}."));
        }
    }
}
