//! Why no worker is left for a job, in the reader's language: "8 workers: 3 have site=graz, 0 of them have 16 GPUs."

use crate::protocol::explain::{AskCode, SummaryStep, SummaryView};
use crate::ui::locales::Language;

/// As a sentence.
pub(crate) fn summary_words(language: &Language, summary: &SummaryView) -> String {
    let words = &language.why;
    let steps = summary.steps.iter().enumerate().map(|(place, step)| left(language, step, place == 0));
    let steps: Vec<_> = steps.collect();
    words.summary.with(&[&words.workers.of(summary.workers), &steps.join(words.and_of_them)])
}

/// How many are left, of all or of those that were left before.
fn left(language: &Language, step: &SummaryStep, is_first: bool) -> String {
    let words = &language.why;
    let number = language.whole(step.left);
    let who = if is_first { words.some.of(number) } else { words.of_them.of(number) };
    let wanted = step.wanted.as_deref().unwrap_or("–");
    let gpus = |count: u64| words.gpus.of(count);
    let has = |thing: &str| words.left_has.about(step.left, &who, thing);
    let state = match step.ask {
        AskCode::Target if wanted == "local" => words.left_own,
        AskCode::Target => words.left_remote,
        AskCode::HasConnected => words.left_connected,
        AskCode::Ready => words.left_ready,
        AskCode::Free => words.left_free,
        AskCode::Label => return has(&format!("{}={wanted}", step.key.as_deref().unwrap_or("–"))),
        AskCode::Accelerator => return has(&words.asked_accelerator.of(wanted)),
        AskCode::GpuCount => return has(&gpus(wanted.parse().unwrap_or_default())),
        AskCode::Vram => return has(&words.asked_vram.with(&[&gpus(step.gpus.unwrap_or(1).into()), &wanted])),
        AskCode::Sandbox => return has(&words.asked_sandbox.of(wanted)),
        AskCode::Paths => return has(&words.asked_paths.of(wanted)),
        AskCode::NewerAgent => return has(words.asked_agent),
    };
    state.about(step.left, &who, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::prefs::Locale;

    fn step(ask: AskCode, wanted: &str, left: u64) -> SummaryStep {
        let key = (ask == AskCode::Label).then(|| "site".to_owned());
        let gpus = (ask == AskCode::Vram).then_some(2);
        SummaryStep { ask, key, wanted: (!wanted.is_empty()).then(|| wanted.to_owned()), gpus, left }
    }

    fn summary(workers: u64, steps: &[SummaryStep]) -> SummaryView {
        SummaryView { text: String::new(), workers, steps: steps.to_vec() }
    }

    #[test]
    fn a_summary_says_who_is_left_and_where_nobody_is() {
        let graz = summary(8, &[step(AskCode::Label, "graz", 3), step(AskCode::GpuCount, "16", 0)]);
        let written = Locale::ALL.map(|locale| summary_words(Language::of(locale), &graz));
        assert_eq!(
            written,
            [
                "8 workers: 3 have site=graz, 0 of them have 16 GPUs.",
                "8 workers: 3 tienen site=graz, 0 de ellos tienen 16 GPU.",
                "8 वर्कर: 3 के पास site=graz है, उनमें से 0 के पास 16 GPU है।",
                "ワーカー8台: 3台が site=graz に該当、そのうち0台が GPU 16基 に該当。",
                "8 workers: 3 têm site=graz, 0 deles tem 16 GPUs.",
                "8个工作节点：3个有 site=graz，其中0个有 16 个 GPU。",
            ]
        );
    }

    #[test]
    fn each_thing_that_is_asked_has_its_words() {
        let rows = [
            (step(AskCode::Target, "local", 1), "1 is this server's own"),
            (step(AskCode::Target, "worker", 2), "2 are remote"),
            (step(AskCode::HasConnected, "", 1), "1 has connected before"),
            (step(AskCode::Accelerator, "rocm", 0), "0 have the accelerator rocm"),
            (step(AskCode::Vram, "80", 1), "1 has 2 GPUs with 80 GB"),
            (step(AskCode::Sandbox, "full", 0), "0 have a sandbox of level full"),
            (step(AskCode::NewerAgent, "", 1), "1 has a new enough agent"),
            (step(AskCode::Paths, "{data_root}", 0), "0 have a directory for {data_root}"),
            (step(AskCode::Ready, "", 1), "1 is online and takes new jobs"),
            (step(AskCode::Free, "", 0), "0 are free"),
        ];
        for (step, words) in rows {
            let said = summary_words(Language::of(Locale::En), &summary(1, &[step]));
            assert_eq!(said, format!("1 worker: {words}."));
        }
    }
}
