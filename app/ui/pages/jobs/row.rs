//! The rows of the list. A row stays its job's while others come, so that no open menu is suddenly another one's.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::queue::MAX_PRIORITY;
use crate::domain::time::Millis;
use crate::protocol::queue::{JobView, JobsPage, JobsQuery};
use crate::protocol::status::{BulkAction, JobStatus, Phase};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::job_table::JobProgress;
use crate::ui::components::labels::chips;
use crate::ui::components::picking::{Offer, pick, pick_all};
use crate::ui::components::reason::ReasonLine;
use crate::ui::components::status::JobBadge;
use crate::ui::components::steady::steady;
use crate::ui::components::time::{Elapsed, Moment};
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::format::{query_string, short_id};
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::prefs::Prefs;

use super::query::jobs_address;

/// How much more urgent a job becomes at once.
const RAISE: u8 = 5;

/// What can be done to those that are picked, as far as the reader may.
pub(super) fn offers() -> Vec<Offer> {
    let words = t();
    let may = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.may(permission));
    let cancel = Offer { action: BulkAction::Cancel, label: words.picking.cancel, glyph: Glyph::StopCircle, key: None };
    let retry = Offer { action: BulkAction::Retry, label: words.work.retry, glyph: Glyph::Play, key: None };
    let cancel = may(Permission::JobCancelOwn).then_some(cancel);
    cancel.into_iter().chain(may(Permission::JobSubmit).then_some(retry)).collect()
}

/// The table. As cards on a small screen it would be none to a screen reader, so its roles are said.
#[component]
pub(super) fn Rows(page: RwSignal<JobsPage>, caption: Text, back: String) -> impl IntoView {
    let words = t();
    let picks = !offers().is_empty();
    let ids = Memo::new(move |_| page.with(|page| page.jobs.iter().map(|job| job.job_id.clone()).collect::<Vec<_>>()));
    let row = move |id: JobId| {
        let same = id.clone();
        let job = Memo::new(move |last: Option<&Option<JobView>>| {
            let now = page.with(|page| page.jobs.iter().find(|job| job.job_id == same).cloned());
            // A row that is about to go keeps what it says.
            now.or_else(|| last.cloned().flatten())
        });
        view! { <Row id=id job=job back=back.clone() picks=picks/> }.erased()
    };
    let (body, hint) = steady(ids, row);
    view! {
        <table class="data jobs" role="table">
            <caption class="sr-only">{caption}</caption>
            <thead role="rowgroup">
                <tr role="row">
                    {picks.then(|| view! { <td role="cell" class="pick-cell">{pick_all()}</td> })}
                    <th scope="col" role="columnheader">{words.jobs.job}</th>
                    <th scope="col" role="columnheader">{words.jobs.status}</th>
                    <th scope="col" role="columnheader" class="jobs-demand">{words.work.asks_for}</th>
                    <th scope="col" role="columnheader" class="num max-xl:hidden">{words.work.priority}</th>
                    <th scope="col" role="columnheader">{words.jobs.progress}</th>
                    <th scope="col" role="columnheader" class="max-lg:hidden">{words.jobs.worker}</th>
                    <th scope="col" role="columnheader" class="num">{words.jobs.took}</th>
                    <th scope="col" role="columnheader"><span class="sr-only">{words.work.actions}</span></th>
                </tr>
            </thead>
            {body}
        </table>
        {hint}
    }
    .erased()
}

#[component]
fn Row(id: JobId, job: Memo<Option<JobView>>, back: String, picks: bool) -> impl IntoView {
    let cells = move || job.with(|job| job.as_ref().map(cells));
    let kind = Memo::new(move |_| job.with(|job| job.as_ref().map(|job| (job.status, job.priority))));
    let name = job.with_untracked(|job| job.as_ref().map(|job| job.config_name.clone())).unwrap_or_default();
    // Many jobs are of one configuration.
    let called = || format!("{name} {}", short_id(id.as_str()));
    let picked = picks.then(|| view! { <td role="cell" class="pick-cell">{pick(id.to_string(), &called())}</td> });
    let menu = move || {
        let (status, priority) = kind.get()?;
        Some(view! { <Menu id=id.clone() name=name.clone() status=status priority=priority back=back.clone()/> })
    };
    view! {
        <tr role="row">
            {picked}
            {cells}
            <td class="row-menu-cell" role="cell">{menu}</td>
        </tr>
    }
    .erased()
}

fn cells(job: &JobView) -> impl IntoView + use<> {
    let of_user = jobs_address(&JobsQuery { user: Some(job.submitted_by.clone()), ..JobsQuery::default() });
    view! {
        <th scope="row" role="rowheader">
            <a class="row-link" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
            <span class="row-sub">
                <span class="font-mono" title=job.job_id.to_string()>{short_id(job.job_id.as_str())}</span>
                " · "
                <a class="sub-link" href=of_user>{job.submitted_by.clone()}</a>
                " · "
                <Moment at=job.submitted_at/>
            </span>
        </th>
        <td role="cell" class="jobs-state">
            <JobBadge status=job.status/>
            {remark(job).map(sub)}
            {job.error.clone().map(|error| view! { <ReasonLine error=error/> })}
        </td>
        <td role="cell" class="jobs-demand"><Demand job=job.clone()/></td>
        <td role="cell" class="num max-xl:hidden">{job.priority}</td>
        <td role="cell" class="jobs-progress">
            <JobProgress job=job.clone()/>
            {how_far(job).map(sub)}
        </td>
        <td role="cell" class="max-lg:hidden"><WorkerLink job=job.clone()/></td>
        <td role="cell" class="num text-muted jobs-time">{time(job)}{remaining(job).map(sub)}</td>
    }
    .erased()
}

/// A line below.
fn sub(text: String) -> AnyView {
    view! { <span class="row-sub">{text}</span> }.erased()
}

/// What the status alone does not say.
fn remark(job: &JobView) -> Option<String> {
    let words = &t().jobs;
    let turn = |place| if job.fits_none { words.fits_none.to_owned() } else { words.position.of(t().whole(place)) };
    let place = job.queue_position.map(turn);
    let attempt = (job.attempt.0 > 1).then(|| words.attempt.with(&[&job.attempt.0, &job.max_attempts]));
    let said: Vec<_> = place.into_iter().chain(attempt).collect();
    (!said.is_empty()).then(|| said.join(" · "))
}

/// What the newest step says.
fn how_far(job: &JobView) -> Option<String> {
    let loss = job.progress.as_ref().filter(|_| job.status != JobStatus::Queued).and_then(|progress| progress.loss);
    loss.map(|loss| t().work.loss.of(t().number(loss)))
}

/// How long it has waited, runs, or ran.
fn time(job: &JobView) -> impl IntoView + use<> {
    match (job.started_at, job.status.is_in(Phase::Waiting)) {
        (Some(from), false) => view! { <Elapsed from=from until=job.ended_at/> }.erased(),
        (_, true) => view! { <span title=t().work.waits_since><Elapsed from=job.submitted_at/></span> }.erased(),
        (None, false) => "–".erased(),
    }
}

fn remaining(job: &JobView) -> Option<String> {
    let seconds = job.progress.as_ref().filter(|_| job.status == JobStatus::Running).and_then(|p| p.eta_seconds);
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let span = seconds.map(|seconds| t().span(Millis::seconds(seconds as i64)));
    span.map(|span| t().work.left.of(span))
}

/// GPUs, memory and labels that it asks for.
#[component]
fn Demand(job: JobView) -> impl IntoView {
    let words = t();
    let gpus = job.gpu_count.map(|count| words.why.gpus.of(count.into()));
    let memory = job.min_vram_gb.map(|gb| words.work.memory_each.of(gb));
    let parts: Vec<_> = gpus.into_iter().chain(memory).chain(job.accelerator_type).collect();
    let any = parts.is_empty() && job.worker_labels.0.is_empty();
    view! {
        <span class="block">{if any { words.work.anything.to_owned() } else { parts.join(" · ") }}</span>
        {chips(job.worker_labels, "/jobs")}
    }
    .erased()
}

/// What can be done with the job, as far as the reader may.
#[component]
fn Menu(id: JobId, name: String, status: JobStatus, priority: u8, back: String) -> impl IntoView {
    let words = t();
    let may = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.may(permission));
    let ended = status.is_terminal();
    let raised = priority.saturating_add(RAISE).min(MAX_PRIORITY);
    let raises = may(Permission::QueueManage) && status.is_in(Phase::Waiting) && raised > priority;
    let (cancels, retries) = (may(Permission::JobCancelOwn) && !ended, may(Permission::JobSubmit) && ended);
    if !(raises || cancels || retries) {
        return ().erased();
    }
    let ask = format!("/jobs/{id}/cancel{}", query_string(&[("back", Some(back.clone()))]));
    view! {
        <details class="row-menu">
            <summary class="icon-button" aria-label=words.work.actions_of.of(&name)><Icon glyph=Glyph::More/></summary>
            <div class="row-menu-body">
                {raises.then(|| view! {
                    <form method="post" action=format!("/ui/jobs/{id}/priority")>
                        <input type="hidden" name="back" value=back.clone()/>
                        <button class="menu-item" name="priority" value=raised.to_string()><Icon glyph=Glyph::Raise/>{words.work.raise.of(raised)}</button>
                        <button class="menu-item" name="top" value="true"><Icon glyph=Glyph::Raise/>{words.work.top}</button>
                    </form>
                })}
                {retries.then(|| view! {
                    <form method="post" action=format!("/ui/jobs/{id}/retry")>
                        <button class="menu-item"><Icon glyph=Glyph::Play/>{words.work.retry}</button>
                    </form>
                })}
                {cancels.then(|| view! { <a class="menu-item" rel="external" href=ask><Icon glyph=Glyph::StopCircle/>{words.job.cancel}"…"</a> })}
            </div>
        </details>
    }
    .erased()
}
