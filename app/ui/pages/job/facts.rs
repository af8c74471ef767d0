//! What a job requests, where it runs, and what it used.

use leptos::prelude::*;

use super::sentence::{gpu_hours, run_time};
use crate::protocol::jobs::JobView;
use crate::ui::components::job_request::request_facts;
use crate::ui::components::time::RelativeTime;
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn JobFacts(job: Memo<JobView>) -> impl IntoView {
    view! {
        <section class="panel job-facts" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{t().job.facts}</h2>
            <dl class="facts">{move || job.with(fact_rows)}</dl>
        </section>
    }
    .into_erased()
}

fn fact_rows(job: &JobView) -> impl IntoView + use<> {
    let words = t();
    let cost = gpu_hours(job).filter(|_| job.status.is_terminal());
    view! {
        {job.worker_id.is_some().then(|| view! { <div><dt>{words.job.worker}</dt><dd><WorkerLink job=job.clone()/></dd></div> })}
        {request_facts(job)}
        {job.started_at.map(|at| view! { <div><dt>{words.job.started}</dt><dd><RelativeTime at=at/></dd></div> })}
        {job.ended_at.map(|at| view! { <div><dt>{words.job.ended}</dt><dd><RelativeTime at=at/></dd></div> })}
        {run_time(job).map(|span| view! { <div><dt>{words.job.elapsed}</dt><dd>{words.format_duration(span)}</dd></div> })}
        {cost.map(|hours| view! { <div><dt>{words.job.gpu_hours}</dt><dd>{gpu_hours_text(hours)}</dd></div> })}
    }
    .into_erased()
}

fn gpu_hours_text(hours: f64) -> String {
    let rounded = t().locale.fixed(hours.max(0.01), 2);
    if hours < 0.01 { format!("< {rounded}") } else { rounded }
}
