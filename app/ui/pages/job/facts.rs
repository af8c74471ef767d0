//! What a job requests, and where it runs.

use leptos::prelude::*;

use crate::protocol::jobs::JobView;
use crate::ui::components::job_request::request_facts;
use crate::ui::components::time::RelativeTime;
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn JobFacts(job: Memo<JobView>) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{t().job.facts}</h2>
            <dl class="facts">{move || job.with(fact_rows)}</dl>
        </section>
    }
    .into_erased()
}

fn fact_rows(job: &JobView) -> impl IntoView + use<> {
    let words = t();
    view! {
        <div><dt>{words.job.worker}</dt><dd><WorkerLink job=job.clone()/></dd></div>
        {request_facts(job)}
        {job.started_at.map(|at| view! { <div><dt>{words.job.started}</dt><dd><RelativeTime at=at/></dd></div> })}
        {job.ended_at.map(|at| view! { <div><dt>{words.job.ended}</dt><dd><RelativeTime at=at/></dd></div> })}
    }
    .into_erased()
}
