//! Why no worker is left for a job, in words and in numbers.

use app::domain::explain::{Ask, Step, Summary};
use app::domain::job::Target;
use app::protocol::explain::{AskCode, SummaryStep, SummaryView};

use super::explain::{braced, gpus};

/// As clients see it.
pub(super) fn view(summary: &Summary) -> SummaryView {
    SummaryView {
        text: text(summary),
        workers: summary.workers as u64,
        steps: summary.steps.iter().map(step).collect(),
    }
}

fn step(Step { ask, left }: &Step) -> SummaryStep {
    let plain = |ask| SummaryStep { ask, key: None, wanted: None, gpus: None, left: *left as u64 };
    let wanting = |ask, wanted: String| SummaryStep { wanted: Some(wanted), ..plain(ask) };
    match ask {
        Ask::Target(target) => wanting(AskCode::Target, target.as_str().to_owned()),
        Ask::Label { key, wanted } => SummaryStep { key: Some(key.clone()), ..wanting(AskCode::Label, wanted.clone()) },
        Ask::HasConnected => plain(AskCode::HasConnected),
        Ask::Accelerator(kind) => wanting(AskCode::Accelerator, kind.clone()),
        Ask::Gpus(count) => wanting(AskCode::GpuCount, count.to_string()),
        Ask::Vram { gb, gpus } => SummaryStep { gpus: Some(*gpus), ..wanting(AskCode::Vram, gb.to_string()) },
        Ask::Sandbox(level) => wanting(AskCode::Sandbox, level.as_str().to_owned()),
        Ask::NewerAgent => plain(AskCode::NewerAgent),
        Ask::Paths(names) => wanting(AskCode::Paths, braced(names)),
        Ask::Ready => plain(AskCode::Ready),
        Ask::Free => plain(AskCode::Free),
    }
}

/// The words of the page in English (`app/locales/en/why.rs`).
fn text(summary: &Summary) -> String {
    let of_them = |place: usize| if place == 0 { "" } else { " of them" };
    let step = |(place, Step { ask, left }): (usize, &Step)| format!("{left}{} {}", of_them(place), does(ask, *left));
    let steps: Vec<String> = summary.steps.iter().enumerate().map(step).collect();
    let workers = if summary.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", summary.workers) };
    format!("{workers}: {}.", steps.join(", "))
}

fn does(ask: &Ask, count: usize) -> String {
    let (has, is, takes) = if count == 1 { ("has", "is", "takes") } else { ("have", "are", "take") };
    match ask {
        Ask::Target(Target::Local) => format!("{is} this server's own"),
        Ask::Target(Target::Worker | Target::Auto) => format!("{is} remote"),
        Ask::Label { key, wanted } => format!("{has} {key}={wanted}"),
        Ask::HasConnected => format!("{has} connected before"),
        Ask::Accelerator(kind) => format!("{has} the accelerator {kind}"),
        Ask::Gpus(count) => format!("{has} {}", gpus(*count)),
        Ask::Vram { gb, gpus: count } => format!("{has} {} with {gb} GB", gpus(*count)),
        Ask::Sandbox(level) => format!("{has} a sandbox of level {}", level.as_str()),
        Ask::NewerAgent => format!("{has} a new enough agent"),
        Ask::Paths(names) => format!("{has} a directory for {}", braced(names)),
        Ask::Ready => format!("{is} online and {takes} new jobs"),
        Ask::Free => format!("{is} free"),
    }
}
