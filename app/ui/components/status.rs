//! Statuses as icon, word and color. Each is one `match`, so that a new status does not compile until it has a style. Those
//! of jobs are in [`crate::ui::job_status`].

use leptos::prelude::*;

use super::icon::Icon;
use crate::protocol::status::{ArtifactKind, JobStatus, Target, WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::job_status::job_status_style;
use crate::ui::locales::sentence::Text;
use crate::ui::locales::words::Status as StatusWords;
use crate::ui::status_style::StatusStyle;

/// Returns the style of a worker's status; `was_connected` distinguishes an offline worker from one that never
/// connected.
pub(crate) fn worker_status_style(words: &StatusWords, status: WorkerStatus, was_connected: bool) -> StatusStyle {
    let (class, glyph, label) = match status {
        WorkerStatus::Connecting => ("status status-wait", Glyph::Dotted, words.connecting),
        WorkerStatus::Idle => ("status status-good", Glyph::Filled, words.idle),
        WorkerStatus::Busy => ("status status-active status-spin", Glyph::Spinner, words.busy),
        WorkerStatus::Draining => ("status status-warn", Glyph::Drain, words.draining),
        WorkerStatus::Offline if was_connected => ("status status-bad", Glyph::CrossCircle, words.offline),
        WorkerStatus::Offline => ("status status-off", Glyph::Ring, words.never_connected),
    };
    StatusStyle { class, glyph, label }
}

/// Returns the style of a worker's status, or of its lost connection: then its agent sends nothing, but jobs may still
/// run.
pub(super) fn worker_style(words: &StatusWords, worker: &WorkerView) -> StatusStyle {
    if worker.connection_lost {
        StatusStyle { class: "status status-wait", glyph: Glyph::Dotted, label: words.connection_lost }
    } else {
        worker_status_style(words, worker.status, worker.last_heartbeat.is_some())
    }
}

/// Returns the style of an attempt's outcome; `outcome` is none while the attempt is active.
pub(crate) fn outcome_style(words: &StatusWords, outcome: Option<&str>) -> StatusStyle {
    let (class, glyph, label) = match outcome {
        None => ("status status-active status-spin", Glyph::Spinner, words.running),
        Some("completed") => ("status status-good", Glyph::CheckCircle, words.completed),
        Some("failed") => ("status status-bad", Glyph::CrossCircle, words.failed),
        Some("lost") => ("status status-warn", Glyph::Warning, words.lost),
        Some("expired") => ("status status-off", Glyph::HalfCircle, words.expired),
        Some(_) => ("status status-off", Glyph::StopCircle, words.cancelled),
    };
    StatusStyle { class, glyph, label }
}

/// Returns the label of a worker's type; `kind` is none until the agent has set it.
pub(crate) fn worker_type_label(words: &StatusWords, kind: Option<WorkerType>) -> Text {
    match kind {
        Some(WorkerType::Ephemeral) => words.ephemeral,
        Some(WorkerType::Persistent) => words.persistent,
        None => words.undecided_type,
    }
}

pub(crate) fn target_label(words: &StatusWords, target: Target) -> Text {
    match target {
        Target::Auto => words.target_auto,
        Target::Worker => words.target_worker,
        Target::Local => words.target_local,
    }
}

pub(crate) fn artifact_kind_label(words: &StatusWords, kind: ArtifactKind) -> Text {
    match kind {
        ArtifactKind::Final => words.kinds.r#final,
        ArtifactKind::Checkpoint => words.kinds.checkpoint,
        ArtifactKind::Sample => words.kinds.sample,
        ArtifactKind::Other => words.kinds.other,
    }
}

#[component]
pub(crate) fn StatusBadge(
    style: StatusStyle,
    /// More about the status.
    #[prop(optional_no_strip)]
    title: Option<Text>,
) -> impl IntoView {
    view! {
        <span class=style.class title=title>
            <Icon glyph=style.glyph/>
            <span>{style.label}</span>
        </span>
    }
    .into_erased()
}

#[component]
pub(crate) fn JobBadge(status: JobStatus) -> impl IntoView {
    view! { <StatusBadge style=job_status_style(&t().status, status)/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::locales::Language;
    use crate::ui::prefs::Locale;

    #[test]
    fn each_status_has_a_word_of_its_own() {
        let mut words: Vec<_> = WorkerStatus::ALL
            .iter()
            .map(|status| worker_status_style(&Language::of(Locale::En).status, *status, true).label)
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), WorkerStatus::ALL.len());
    }

    #[test]
    fn failed_and_offline_are_red_but_never_connected_is_not() {
        assert_eq!(
            worker_status_style(&Language::of(Locale::En).status, WorkerStatus::Offline, true).class,
            "status status-bad"
        );
        assert_eq!(
            worker_status_style(&Language::of(Locale::En).status, WorkerStatus::Offline, false).label,
            "Never connected"
        );
        assert_eq!(outcome_style(&Language::of(Locale::En).status, Some("something new")).class, "status status-off");
    }
}
