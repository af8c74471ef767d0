//! How far a job is: the progress of a running one, and the last values of one that has ended.

use leptos::prelude::*;

use super::job_charts::nan_text;
use super::progress_bar::LargeProgressBar;
use super::time::Elapsed;
use crate::domain::time::Millis;
use crate::protocol::jobs::{JobView, ProgressView};
use crate::protocol::status::JobOutcome;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The progress of a job that runs.
#[component]
pub(crate) fn JobProgressPanel(detail: Memo<JobView>) -> impl IntoView {
    let words = &t().job;
    let percent =
        Signal::derive(move || detail.with(|detail| detail.progress.as_ref().and_then(|progress| progress.percent)));
    let ended = Signal::derive(move || detail.with(|detail| detail.status.is_terminal()));
    let stage = Memo::new(move |_| detail.with(|detail| detail.progress.as_ref()?.stage.clone()));
    let label = detail.with_untracked(|detail| words.progress_of.of(&detail.config_name));
    view! {
        <section class="panel job-head" aria-label=words.progress>
            <div class="job-head-top">
                <p class="job-percent">{move || percent.get().map_or_else(|| "–".to_owned(), |percent| t().format_percent(percent))}</p>
                <p class="job-stage">{stage} <NanNote detail=detail/></p>
            </div>
            <LargeProgressBar percent=percent label=label ended=ended/>
            <dl class="readings">{move || detail.with(|detail| view! { {metric_readings(detail)} {time_readings(detail)} })}</dl>
        </section>
    }
    .into_erased()
}

/// The last values of a job that has ended.
#[component]
pub(crate) fn JobReadings(detail: Memo<JobView>) -> impl IntoView {
    let words = &t().job;
    let title = move || {
        let has_completed = detail.with(|detail| detail.status.outcome() == JobOutcome::Completed);
        if has_completed { words.final_metrics } else { words.last_metrics }
    };
    view! {
        <section class="panel" aria-labelledby="last-metrics">
            <h2 id="last-metrics" class="panel-head">{title}</h2>
            <div class="panel-body">
                <dl class="readings">{move || detail.with(metric_readings)}</dl>
                <p class="panel-note"><NanNote detail=detail/></p>
            </div>
        </section>
    }
    .into_erased()
}

#[component]
fn NanNote(detail: Memo<JobView>) -> impl IntoView {
    let nan_since = Memo::new(move |_| detail.with(|detail| detail.progress.as_ref()?.loss_nan_since));
    view! { {move || nan_since.get().map(|step| view! { <strong>{nan_text(step)}</strong> })} }.into_erased()
}

fn metric_readings(job: &JobView) -> AnyView {
    let words = &t().job;
    let progress = job.progress.clone().unwrap_or_default();
    let has_progress = job.progress.is_some();
    let step = match progress.total_steps {
        Some(total) => t().common.of.with(&[&t().format_integer(progress.step), &t().format_integer(total)]),
        None => t().format_integer(progress.step),
    };
    view! {
        <ProgressReading name=words.step value=if has_progress { step } else { dash() }/>
        <ProgressReading name=words.loss value=loss_text(&progress).unwrap_or_else(dash)/>
        <ProgressReading name=words.learning_rate value=progress.learning_rate.map_or_else(dash, |value| t().format_number(value))/>
        <ProgressReading name=words.epoch value=progress.epoch.map_or_else(dash, |value| t().format_number(value))/>
    }
    .into_erased()
}

fn time_readings(job: &JobView) -> AnyView {
    let words = &t().job;
    let eta = job.progress.as_ref().and_then(|progress| progress.eta_seconds);
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let remaining = eta.filter(|_| !job.status.is_terminal()).map(|seconds| Millis::from_secs(seconds as i64));
    let elapsed = job.started_at.map(|from| view! { <Elapsed from=from until=job.ended_at/> });
    view! {
        <ProgressReading name=words.remaining value=remaining.map_or_else(dash, |span| t().format_duration(span))/>
        <div><dt>{words.elapsed}</dt><dd>{elapsed.map_or_else(|| dash().into_erased(), Erase::into_erased)}</dd></div>
    }
    .into_erased()
}

fn dash() -> String {
    "–".to_owned()
}

/// Returns the last loss that the trainer reported; `NaN` if it was not finite.
fn loss_text(progress: &ProgressView) -> Option<String> {
    let nan = progress.loss_nan_since.map(|_| "NaN".to_owned());
    nan.or_else(|| progress.loss.map(|value| t().format_number(value)))
}

#[component]
fn ProgressReading(name: &'static str, value: String) -> impl IntoView {
    view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_loss_is_shown_as_nan() {
        let loss_text = |number, since| {
            super::loss_text(&ProgressView { loss: number, loss_nan_since: since, ..ProgressView::default() })
        };
        assert_eq!(
            [loss_text(None, None), loss_text(Some(9.65), None), loss_text(None, Some(7))],
            [None, Some("9.65".to_owned()), Some("NaN".to_owned())]
        );
    }
}
