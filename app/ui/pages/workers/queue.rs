//! The jobs that wait for a worker, the next one first.

use leptos::prelude::*;

use crate::protocol::jobs::{JobView, JobsPage, JobsQuery};
use crate::protocol::status::JobPhase;
use crate::protocol::topic::Topic;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::action::MoreLink;
use crate::ui::components::job_request::ResourceRequest;
use crate::ui::components::job_table::status_remark;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::jobs_url;
use crate::ui::view_scope::ViewScope;

/// The number of jobs that are shown.
const MAX_WAITING: u32 = 10;

fn waiting_jobs(limit: Option<u32>) -> JobsQuery {
    JobsQuery { phase: Some(JobPhase::Waiting), limit, ..JobsQuery::default() }
}

/// The first of the waiting jobs that the user may see.
#[component]
pub(super) fn QueuePanel() -> impl IntoView {
    let backend = use_backend();
    let first = Resource::new(|| (), {
        let backend = backend.clone();
        move |()| backend.jobs(waiting_jobs(Some(MAX_WAITING)))
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend) = (scope.clone(), backend.clone());
        Suspend::new(async move {
            match first.await {
                Ok(first) => scope.render(|| view! { <WaitingJobs first=first backend=backend/> }.into_erased()),
                Err(problem) => view! { <ProblemNotice problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <section class="panel" aria-labelledby="queue">
            <h2 id="queue" class="panel-head">
                {t().fleet.queue}
                <MoreLink href=jobs_url(&waiting_jobs(None)) label=t().fleet.all_waiting/>
            </h2>
            <Suspense>{shown}</Suspense>
        </section>
    }
    .into_erased()
}

#[component]
fn WaitingJobs(first: JobsPage, backend: SharedBackend) -> impl IntoView {
    let page = live_signal(first, &[Topic::Jobs], move || backend.jobs(waiting_jobs(Some(MAX_WAITING))));
    let rows = move || {
        page.with(|page| {
            if page.jobs.is_empty() {
                return view! { <p class="panel-foot panel-note">{t().fleet.none_waiting}</p> }.into_erased();
            }
            let rows = page.jobs.iter().map(waiting_job).collect_view();
            view! { <ol class="rows">{rows}</ol> }.into_erased()
        })
    };
    view! { {rows} }.into_erased()
}

fn waiting_job(job: &JobView) -> AnyView {
    view! {
        <li class="waiting-job">
            <span class="min-w-0">
                <a class="row-link" href=format!("/jobs/{}", job.job_id) title=job.title()>{job.title()}</a>
                <span class="row-sub"><RelativeTime at=job.submitted_at/>" "{t().job.submitted_by.of(&job.submitted_by)}</span>
            </span>
            <span class="min-w-0"><ResourceRequest job=job.clone()/></span>
            <span class="min-w-0">{status_remark(job)}</span>
        </li>
    }
    .into_erased()
}
