//! What people do with a job: cancel it, say how urgent it is, run it again. All of it says first what will happen.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::queue::MAX_PRIORITY;
use crate::protocol::queue::JobView;
use crate::protocol::status::{JobStatus, Phase};
use crate::ui::components::action::{ConfirmedAction, Deed, Said};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The buttons of a job's page. They follow what it is, and stay as they are while it goes on.
#[component]
pub(in crate::ui) fn JobActions(#[prop(into)] job: Signal<JobView>) -> impl IntoView {
    let may = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.may(permission));
    // Whose job it is says the server; who may cancel none is not asked.
    let (cancels, submits) = (may(Permission::JobCancelOwn), may(Permission::JobSubmit));
    let urges = may(Permission::QueueManage);
    let status = Memo::new(move |_| job.with(|job| job.status));
    let priority = Memo::new(move |_| job.with(|job| job.priority));
    let (id, clone) = job.with_untracked(|job| (job.job_id.clone(), again(job)));
    let buttons = move || {
        let (status, ended) = (status.get(), status.get().is_terminal());
        let (id, clone) = (id.clone(), clone.clone());
        view! {
            {(urges && status.is_in(Phase::Waiting)).then(|| view! { <Urgency id=id.clone() priority=priority.get()/> })}
            {submits.then(|| view! { <a class="btn btn-sm" rel="external" href=clone><Icon glyph=Glyph::Copy/>{t().work.clone}</a> })}
            {(submits && ended).then(|| view! { <RunAgain id=id.clone()/> })}
            {(cancels && !ended).then(|| view! { <Cancel id=id status=status/> })}
        }
        .erased()
    };
    view! { {buttons} }.erased()
}

/// The page that submits, filled in as this job was.
fn again(job: &JobView) -> String {
    let labels = job.worker_labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let query = query_string(&[
        ("config", Some(job.config_name.clone())),
        ("gpus", job.gpu_count.map(|count| count.to_string())),
        ("labels", Some(labels)),
        ("target", Some(job.target.as_str().to_owned())),
        ("priority", Some(job.priority.to_string())),
    ]);
    format!("/train{query}")
}

#[component]
fn Cancel(id: JobId, status: JobStatus) -> impl IntoView {
    let words = &t().job;
    let deed = Deed { form: format!("/ui/jobs/{id}/cancel"), method: "POST", rest: format!("/api/queue/{id}/cancel") };
    let waits = status.is_in(Phase::Waiting);
    let text = if waits { t().work.cancel_waiting } else { words.cancel_text };
    let keep = if waits { t().work.keep_waiting } else { words.keep };
    view! {
        <ConfirmedAction
            deed=deed
            label=words.cancel
            text=text
            confirm=words.cancel_confirm
            keep=keep
            glyph=Glyph::StopCircle
            said=Some(Said { text: t().flash.job_cancelled, undo: None })
            ask="cancel"
        />
    }
    .erased()
}

#[component]
fn RunAgain(id: JobId) -> impl IntoView {
    let words = &t().work;
    view! {
        <details class="confirm">
            <summary class="btn btn-sm"><Icon glyph=Glyph::Play/>{words.retry}</summary>
            <form class="confirm-body" method="post" action=format!("/ui/jobs/{id}/retry")>
                <p>{words.retry_text}</p>
                <p class="mt-3 flex justify-end"><button class="btn btn-sm btn-primary">{words.retry_confirm}</button></p>
            </form>
        </details>
    }
    .erased()
}

#[component]
fn Urgency(id: JobId, priority: u8) -> impl IntoView {
    let words = &t().work;
    let action = format!("/ui/jobs/{id}/priority");
    view! {
        <details class="confirm">
            <summary class="btn btn-sm"><Icon glyph=Glyph::Raise/>{words.priority}" "<span class="tabular-nums">{priority}</span></summary>
            <form class="confirm-body" method="post" action=action>
                <p id="priority-hint">{words.priority_text}</p>
                <p class="mt-3 flex flex-wrap items-center gap-2">
                    <label for="priority" class="sr-only">{words.priority}</label>
                    <input
                        class="input input-sm w-20"
                        id="priority"
                        name="priority"
                        type="number"
                        min="0"
                        max=MAX_PRIORITY.to_string()
                        value=priority.to_string()
                        aria-describedby="priority-hint"
                        required=true
                    />
                    <button class="btn btn-sm btn-primary">{words.set}</button>
                    <button class="btn btn-sm ml-auto" name="top" value="true" formnovalidate=true>{words.top}</button>
                </p>
            </form>
        </details>
    }
    .erased()
}
