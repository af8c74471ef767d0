//! Confirms that a job is to be cancelled. The job list links here, because its rows have no room for an explanation.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::header::job_problem_page;
use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::protocol::status::JobPhase;
use crate::ui::backend::use_backend;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::status::JobBadge;
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::pages::server_rendered_page::server_rendered_page;
use crate::ui::safe_url::SafeUrl;

#[component]
pub(crate) fn JobCancelPage() -> impl IntoView {
    let backend = use_backend();
    server_rendered_page(
        move |id: JobId| backend.job(id),
        |job| view! { <CancelConfirmation job=job/> }.into_erased(),
        job_problem_page,
    )
}

#[component]
fn CancelConfirmation(job: JobView) -> impl IntoView {
    let words = t();
    let back = use_query_map().with_untracked(|query| query.get("back"));
    let back_url = back.filter(|back| back.starts_with('/')).unwrap_or_else(|| format!("/jobs/{}", job.job_id));
    let back_url = SafeUrl::from_data(&back_url).into_string();
    let waits = job.status.is_in_phase(JobPhase::Waiting);
    let ended = job.status.is_terminal();
    let text = if waits { words.work.cancel_waiting } else { words.job.cancel_text };
    let note = (!ended).then(|| view! { <p>{text}</p> });
    let confirm = (!ended).then(|| {
        view! { <button class="btn btn-error"><Icon glyph=Glyph::StopCircle/>{words.job.cancel_confirm}</button> }
    });
    view! {
        <PageHeader title=words.server_pages().job.cancel_title.of(job.title()) above=("/jobs", words.jobs.title)/>
        <div class="panel form">
            <p class="flex flex-wrap items-center gap-x-4 gap-y-1">
                <JobBadge status=job.status/>
                <a class="quiet-link font-mono text-xs break-all" href=format!("/jobs/{}", job.job_id)>{job.job_id.to_string()}</a>
                <span>{words.job.submitted_by.of(&job.submitted_by)}</span>
                <WorkerLink job=job.clone()/>
            </p>
            {note}
            <form method="post" action=format!("/ui/jobs/{}/cancel", job.job_id) class="form-actions">
                <input type="hidden" name="back" value=back_url.clone()/>
                {confirm}
                <a class="btn btn-ghost" href=back_url>{if waits { words.work.keep_waiting } else { words.job.keep }}</a>
            </form>
        </div>
    }
    .into_erased()
}
