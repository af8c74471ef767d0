//! The first panel of a job's page: how it stands, and what is known about how far it is.

use leptos::prelude::*;

use super::reason::{Reason, log_line};
use super::scale::BigScale;
use super::time::Elapsed;
use crate::domain::time::Millis;
use crate::protocol::queue::JobView;
use crate::protocol::status::JobStatus;
use crate::ui::empty_state::JobStage;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::words::jobs::Job;

/// Progress while there is some, else what the job waits for or how it ended.
#[component]
pub(crate) fn JobHead(detail: Memo<JobView>) -> impl IntoView {
    let words = &t().job;
    let percent =
        Signal::derive(move || detail.with(|detail| detail.progress.as_ref().and_then(|progress| progress.percent)));
    let ended = Signal::derive(move || detail.with(|detail| detail.status.is_terminal()));
    // Where nothing moves, a dial would only take the place of what is said.
    let still = Memo::new(move |_| detail.with(|detail| detail.progress.is_none() && !JobStage::of(detail).has_dial()));
    let fits_none = Memo::new(move |_| detail.with(|detail| detail.fits_none));
    let label = detail.with_untracked(|detail| words.progress_of.of(&detail.config_name));
    view! {
        <section class="panel job-head" aria-label=words.progress>
            <div class="job-head-top">
                {move || (!still.get()).then(|| view! {
                    <p class="job-percent">{move || percent.get().map_or_else(|| "–".to_owned(), |percent| t().percent(percent))}</p>
                })}
                <p class="job-note">
                    {move || detail.with(|detail| note(words, detail))}
                    {move || fits_none.get().then(|| view! { " "<a class="quiet-link" href="#why">{t().why.title}</a> })}
                </p>
            </div>
            {move || (!still.get()).then(|| view! {
                <BigScale percent=percent label=label.clone() ended=ended/>
                <dl class="readings">{move || detail.with(|detail| readings(words, detail))}</dl>
            })}
            {move || detail.with(reason).map(|(error, log)| view! { <Reason error=error log=log/> })}
        </section>
    }
    .erased()
}

/// Why it failed, and where its log says so.
fn reason(job: &JobView) -> Option<(String, Option<String>)> {
    let log = job.error_line.map(|line| log_line(&job.job_id, job.attempt, line));
    Some((job.error.clone()?, log))
}

fn note(words: &Job, job: &JobView) -> String {
    let stage = job.progress.as_ref().and_then(|progress| progress.stage.clone());
    match job.status {
        JobStatus::Queued if job.fits_none => t().why.never.to_owned(),
        JobStatus::Queued => {
            let place = match job.queue_position {
                None => words.waiting_for.to_owned(),
                Some(1) => words.next_in_line.to_owned(),
                Some(place) => words.position.of(t().whole(place)),
            };
            t().common.sentences.with(&[&place, &words.waiting_hint])
        }
        JobStatus::Offered => words.offered_hint.to_owned(),
        JobStatus::Starting => stage.unwrap_or_else(|| words.starting_hint.to_owned()),
        JobStatus::Running => stage.unwrap_or_default(),
        JobStatus::Cancelling => words.cancelling_hint.to_owned(),
        JobStatus::Completed => words.completed_hint.to_owned(),
        JobStatus::Cancelled => words.cancelled_hint.to_owned(),
        JobStatus::Failed => String::new(),
    }
}

fn readings(words: &'static Job, job: &JobView) -> impl IntoView + use<> {
    let progress = job.progress.clone().unwrap_or_default();
    let has_progress = job.progress.is_some();
    let step = match progress.total_steps {
        Some(total) => t().common.of.with(&[&t().whole(progress.step), &t().whole(total)]),
        None => t().whole(progress.step),
    };
    let dash = || "–".to_owned();
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let remaining =
        progress.eta_seconds.filter(|_| !job.status.is_terminal()).map(|seconds| Millis::seconds(seconds as i64));
    let elapsed = job.started_at.map(|from| view! { <Elapsed from=from until=job.ended_at/> });
    view! {
        <Reading name=words.step value=if has_progress { step } else { dash() }/>
        <Reading name=words.loss value=progress.loss.map_or_else(dash, |value| t().number(value))/>
        <Reading name=words.learning_rate value=progress.learning_rate.map_or_else(dash, |value| t().number(value))/>
        <Reading name=words.epoch value=progress.epoch.map_or_else(dash, |value| t().number(value))/>
        <Reading name=words.remaining value=remaining.map_or_else(dash, |span| t().span(span))/>
        <div><dt>{words.elapsed}</dt><dd>{elapsed.map_or_else(|| dash().erased(), Erase::erased)}</dd></div>
    }
    .erased()
}

#[component]
fn Reading(name: &'static str, value: String) -> impl IntoView {
    view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.erased()
}
