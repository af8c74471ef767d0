//! Statuses as icon, word and colour: one `match` each, so that a new status does not compile until it can be shown.

use leptos::prelude::*;

use super::gpu_table::WithheldBadge;
use super::icon::{Glyph, Icon};
use super::worker_token::TokenBadges;
use crate::protocol::status::{ArtifactKind, JobStatus, Target, WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::locales::words::frame::StatusWords;

/// How a status looks: literal class names, because the style sheet is made from the words found in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub class: &'static str,
    pub glyph: Glyph,
    pub word: Text,
}

/// How a job's status looks.
pub(crate) fn job_look(words: &StatusWords, status: JobStatus) -> Look {
    let (class, glyph, word) = match status {
        JobStatus::Queued => ("status status-wait", Glyph::Dotted, words.queued),
        JobStatus::Offered => ("status status-wait", Glyph::HalfCircle, words.offered),
        JobStatus::Starting => ("status status-active", Glyph::HalfCircle, words.starting),
        JobStatus::Running => ("status status-active status-spin", Glyph::Spinner, words.running),
        JobStatus::Cancelling => ("status status-warn", Glyph::StopCircle, words.cancelling),
        JobStatus::Completed => ("status status-good", Glyph::CheckCircle, words.completed),
        JobStatus::Failed => ("status status-bad", Glyph::CrossCircle, words.failed),
        JobStatus::Cancelled => ("status status-off", Glyph::StopCircle, words.cancelled),
    };
    Look { class, glyph, word }
}

/// How a worker's status looks; one that never came is told apart from one that left.
pub(crate) fn worker_look(words: &StatusWords, status: WorkerStatus, was_here: bool) -> Look {
    let (class, glyph, word) = match status {
        WorkerStatus::Connecting => ("status status-wait", Glyph::Dotted, words.connecting),
        WorkerStatus::Idle => ("status status-good", Glyph::Filled, words.idle),
        WorkerStatus::Busy => ("status status-active status-spin", Glyph::Spinner, words.busy),
        WorkerStatus::Draining => ("status status-warn", Glyph::Drain, words.draining),
        WorkerStatus::Offline if was_here => ("status status-bad", Glyph::CrossCircle, words.offline),
        WorkerStatus::Offline => ("status status-off", Glyph::Ring, words.never_connected),
    };
    Look { class, glyph, word }
}

/// How an attempt's outcome looks; none while it goes on.
pub(crate) fn outcome_look(words: &StatusWords, outcome: Option<&str>) -> Look {
    let (class, glyph, word) = match outcome {
        None => ("status status-active status-spin", Glyph::Spinner, words.running),
        Some("completed") => ("status status-good", Glyph::CheckCircle, words.completed),
        Some("failed") => ("status status-bad", Glyph::CrossCircle, words.failed),
        Some("lost") => ("status status-warn", Glyph::Warning, words.lost),
        Some("expired") => ("status status-off", Glyph::HalfCircle, words.expired),
        Some(_) => ("status status-off", Glyph::StopCircle, words.cancelled),
    };
    Look { class, glyph, word }
}

/// The display word of a worker's type.
pub(crate) fn type_word(words: &StatusWords, kind: Option<WorkerType>) -> Text {
    match kind {
        Some(WorkerType::Ephemeral) => words.ephemeral,
        Some(WorkerType::Persistent) => words.persistent,
        None => words.undecided_type,
    }
}

/// The display word of a target.
pub(crate) fn target_word(words: &StatusWords, target: Target) -> Text {
    match target {
        Target::Auto => words.target_auto,
        Target::Worker => words.target_worker,
        Target::Local => words.target_local,
    }
}

/// The display word of an artifact's kind.
pub(crate) fn kind_word(words: &StatusWords, kind: ArtifactKind) -> Text {
    match kind {
        ArtifactKind::Final => words.kind_final,
        ArtifactKind::Checkpoint => words.kind_checkpoint,
        ArtifactKind::Sample => words.kind_sample,
        ArtifactKind::Other => words.kind_other,
    }
}

/// A status.
#[component]
pub(crate) fn Status(look: Look) -> impl IntoView {
    view! {
        <span class=look.class>
            <Icon glyph=look.glyph/>
            <span>{look.word}</span>
        </span>
    }
    .erased()
}

/// A job's status.
#[component]
pub(crate) fn JobBadge(status: JobStatus) -> impl IntoView {
    view! { <Status look=job_look(&t().status, status)/> }.erased()
}

/// A worker's status, with a word about what it does not show: a wished drain, and an agent that trusts anybody.
#[component]
pub(crate) fn WorkerBadge(worker: WorkerView) -> impl IntoView {
    let unverified = worker.tls_verify == Some(false);
    let hidden_drain = worker.draining && worker.status != WorkerStatus::Draining;
    view! {
        <Status look=worker_look(&t().status, worker.status, worker.last_heartbeat.is_some())/>
        {hidden_drain.then(|| view! { <span class="chip">{t().worker.drain_wished}</span> })}
        {unverified.then(|| view! {
            <span class="status status-warn" title=t().worker.unverified_hint>
                <Icon glyph=Glyph::Warning/>
                <span>{t().worker.unverified}</span>
            </span>
        })}
        <UnfitBadge worker=worker.clone()/>
        <WithheldBadge worker=worker.clone()/>
        <TokenBadges worker=worker/>
    }
    .erased()
}

/// That a connected worker's host is fit for no new job.
#[component]
fn UnfitBadge(worker: WorkerView) -> impl IntoView {
    let why = worker.unfit.filter(|_| worker.status != WorkerStatus::Offline);
    let badge = why.map(|why| {
        view! {
            <span class="status status-warn" title=t().worker.unfit_because.of(&why)>
                <Icon glyph=Glyph::Warning/>
                <span>{t().worker.unfit}</span>
            </span>
        }
    });
    badge.erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::locales::Language;
    use crate::ui::prefs::Locale;

    #[test]
    fn each_status_has_a_word_of_its_own() {
        let mut words: Vec<_> =
            JobStatus::ALL.iter().map(|status| job_look(&Language::of(Locale::En).status, *status).word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), JobStatus::ALL.len());
        let mut words: Vec<_> = WorkerStatus::ALL
            .iter()
            .map(|status| worker_look(&Language::of(Locale::En).status, *status, true).word)
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), WorkerStatus::ALL.len());
    }

    #[test]
    fn what_ended_badly_looks_bad_and_what_never_came_does_not() {
        assert_eq!(job_look(&Language::of(Locale::En).status, JobStatus::Failed).class, "status status-bad");
        assert_eq!(
            worker_look(&Language::of(Locale::En).status, WorkerStatus::Offline, true).class,
            "status status-bad"
        );
        assert_eq!(worker_look(&Language::of(Locale::En).status, WorkerStatus::Offline, false).word, "Never connected");
        assert_eq!(outcome_look(&Language::of(Locale::En).status, Some("something new")).class, "status status-off");
    }
}
