//! A job's attempts, when there was more than one, or one that did not begin at the beginning.

use leptos::prelude::*;

use super::status::{Status, outcome_look};
use super::time::Elapsed;
use crate::domain::ids::JobId;
use crate::protocol::queue::AttemptView;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The attempts, oldest first; the log of each is one click away.
#[component]
pub(crate) fn Attempts(job: JobId, #[prop(into)] attempts: Signal<Vec<AttemptView>>) -> impl IntoView {
    let words = &t().job;
    let job = StoredValue::new(job);
    let rows = move || {
        attempts
            .get()
            .into_iter()
            .map(|attempt| view! { <AttemptRow job=job.get_value() attempt=attempt/> })
            .collect_view()
    };
    (move || {
        attempts.with(|attempts| is_told(attempts)).then(|| {
            view! {
                <section class="panel" aria-labelledby="attempts">
                    <h2 id="attempts" class="panel-head">{words.attempts}</h2>
                    <table class="data">
                        <caption class="sr-only">{words.attempts_caption}</caption>
                        <thead class="sr-only">
                            <tr>
                                <th scope="col">{words.attempt}</th>
                                <th scope="col">{words.outcome}</th>
                                <th scope="col">{words.elapsed}</th>
                            </tr>
                        </thead>
                        <tbody>{rows}</tbody>
                    </table>
                </section>
            }
            .erased()
        })
    })
    .erased()
}

/// Whether there is more to say than the page says anyway.
fn is_told(attempts: &[AttemptView]) -> bool {
    attempts.len() > 1 || attempts.iter().any(|attempt| attempt.resumed_from_step.is_some())
}

#[component]
fn AttemptRow(job: JobId, attempt: AttemptView) -> impl IntoView {
    let words = t();
    let name = attempt.worker_name.unwrap_or_else(|| words.job.deleted_worker.to_owned());
    let exit = attempt.exit_code.filter(|code| *code != 0).map(|code| format!("{} {code}", words.job.exit_code));
    let goes_on = attempt.resumed_from_step.map(|step| words.job.goes_on.of(words.whole(step)));
    let remark = attempt.error.or(exit);
    view! {
        <tr>
            <th scope="row">
                <a class="row-link whitespace-nowrap" href=format!("/jobs/{job}?attempt={}#log", attempt.attempt)>{words.log.attempt.of(attempt.attempt.0)}</a>
                <span class="row-sub">{name}</span>
                {goes_on.map(|text| view! { <span class="row-sub">{text}</span> })}
            </th>
            <td>
                <Status look=outcome_look(&words.status, attempt.outcome.as_deref())/>
                <span class="row-sub break-words">{remark}</span>
            </td>
            <td class="num text-muted">{attempt.started_at.map(|from| view! { <Elapsed from=from until=attempt.ended_at/> })}</td>
        </tr>
    }
    .erased()
}
