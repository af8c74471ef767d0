//! The form that edits a worker. If another user has changed the worker in the meantime, the form shows that, and what
//! was entered is not lost.

use leptos::prelude::*;

use super::server_rendered_page::server_rendered_page;
use super::worker::worker_problem_page;
use super::worker_new::WORKER_FIELDS;
use crate::domain::ids::WorkerId;
use crate::domain::labels::Labels;
use crate::protocol::status::WorkerType;
use crate::protocol::workers::{FleetLabels, WorkerView};
use crate::ui::backend::use_page_backend;
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::Icon;
use crate::ui::components::labels::{LabelChips, LabelInputs, LabelSuggestions};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::components::status::worker_type_label;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::FormErrors;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::worker_edit_form::{form_fields, form_url};

#[component]
pub(crate) fn WorkerEditPage() -> impl IntoView {
    let page_backend = use_page_backend();
    let fetch = move |id: WorkerId| {
        let (worker, fleet_labels) = (page_backend.editable_worker(id), page_backend.fleet_labels());
        // The form also works without suggestions.
        async move { Ok((worker.await?, fleet_labels.await.unwrap_or_default())) }
    };
    server_rendered_page(
        fetch,
        |(worker, fleet_labels)| view! { <EditWorkerForm worker=worker fleet_labels=fleet_labels/> }.into_erased(),
        worker_problem_page,
    )
}

#[component]
fn EditWorkerForm(worker: WorkerView, fleet_labels: FleetLabels) -> impl IntoView {
    let words = &t().server_pages().worker;
    let worker_url = format!("/admin/workers/{}", worker.id);
    let (problem, typed) = form_problem(FormName::Worker);
    let is_outdated = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    let filled = if problem.is_some() { typed } else { form_fields(&worker) };
    let filled = move |name: &str| filled.get(name).cloned().unwrap_or_default();
    let errors = FormErrors::from_problem(problem.filter(|_| !is_outdated), &WORKER_FIELDS);
    let above = if is_outdated {
        Some(stored_settings(&worker))
    } else {
        errors.general().map(|problem| view! { <ProblemNotice problem=problem/> }.into_erased())
    };
    view! {
        <PageHeader title=words.edit_title.of(&worker.name) above=(worker_url.clone(), worker.name.clone())/>
        {above}
        <form method="post" action=form_url(&worker) class="panel form">
            <input type="hidden" name="revision" value=worker.revision.clone()/>
            <NameAndTypeFields name=filled("name") kind=WorkerType::parse(&filled("worker_type")) errors=errors/>
            <LabelFields typed=filled("labels") fleet_labels=fleet_labels ignores={filled("ignore_reported_labels") == "true"} worker=worker.clone() errors=errors/>
            <div class="field">
                <div class="choice">
                    <input type="checkbox" class="checkbox checkbox-sm" id="older" name="reject_older_agents" value="true"
                        checked={filled("reject_older_agents") == "true"}/>
                    <label for="older"><span class="font-medium">{words.older}</span><span class="choice-text">{words.older_hint}</span></label>
                </div>
            </div>
            <Field id="networks" label=t().server_pages().create.networks hint=t().server_pages().create.networks_hint optional=true error=errors.message("networks")>
                <input class="input w-full font-mono" id="networks" name="networks" autocomplete="off" spellcheck="false"
                    aria-describedby=errors.aria_describedby("networks", Some("networks-hint")) aria-invalid=errors.aria_invalid("networks")
                    autofocus=errors.is_first("networks") value=filled("networks")/>
            </Field>
            <div class="form-actions">
                <button class="btn btn-primary">{t().server_pages().users.save}</button>
                <a class="btn btn-ghost" href=worker_url>{t().common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}

/// The stored settings, which another user has changed in the meantime.
fn stored_settings(worker: &WorkerView) -> AnyView {
    let (words, create) = (&t().server_pages().worker, &t().server_pages().create);
    let settings = worker.settings.clone().unwrap_or_default();
    let networks = worker.allowed_networks.join(", ");
    let networks = if networks.is_empty() { t().token.any_network.to_owned() } else { networks };
    view! {
        <div class="notice notice-warn" role="alert">
            <Icon glyph=Glyph::Warning/>
            <p class="grow">{words.changed_meanwhile}</p>
        </div>
        <section class="panel mb-6" aria-labelledby="stored">
            <h2 id="stored" class="panel-head">{words.stored}</h2>
            <dl class="facts">
                <div><dt>{create.name}</dt><dd>{worker.name.clone()}</dd></div>
                <div><dt>{create.kind}</dt><dd>{worker_type_label(&t().status, worker.worker_type)}</dd></div>
                <div><dt>{create.labels}</dt><dd><LabelChips labels=settings.labels list="/admin/workers" none=t().worker.no_labels/></dd></div>
                {settings.ignore_reported_labels.then(|| view! { <div><dt>{words.reported}</dt><dd>{words.not_counted}</dd></div> })}
                {settings.reject_older_agents.then(|| view! { <div><dt>{words.older_agents}</dt><dd>{words.older_rejected}</dd></div> })}
                <div><dt>{create.networks}</dt><dd>{networks}</dd></div>
            </dl>
        </section>
    }
    .into_erased()
}

#[component]
fn NameAndTypeFields(name: String, kind: Option<WorkerType>, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().create;
    view! {
        <Field id="name" label=words.name hint=words.name_hint error=errors.message("name")>
            <input class="input w-full" id="name" name="name" required=true maxlength="64" autocomplete="off"
                spellcheck="false" aria-describedby=errors.aria_describedby("name", Some("name-hint")) aria-invalid=errors.aria_invalid("name")
                autofocus=errors.is_first("name") value=name/>
        </Field>
        <fieldset class="field">
            <legend>{words.kind}</legend>
            <p class="field-hint">{words.kind_hint}</p>
            <div class="choices">
                <Choice name="worker_type" value="persistent" checked={kind == Some(WorkerType::Persistent)} label=t().status.persistent text=words.persistent/>
                <Choice name="worker_type" value="ephemeral" checked={kind == Some(WorkerType::Ephemeral)} label=t().status.ephemeral text=words.ephemeral/>
            </div>
        </fieldset>
    }
    .into_erased()
}

/// The labels of the worker, and those that its agent reports, which cannot be edited but can be ignored.
#[component]
fn LabelFields(
    typed: String,
    fleet_labels: FleetLabels,
    ignores: bool,
    worker: WorkerView,
    errors: FormErrors,
) -> impl IntoView {
    let (words, create) = (&t().server_pages().worker, &t().server_pages().create);
    let settings = worker.settings.unwrap_or_default();
    let ignored_on_all = worker.ignore_reported_labels && !settings.ignore_reported_labels;
    let hint = if ignored_on_all { words.ignored_on_all_workers } else { words.ignore_hint };
    let reported = reported_labels(worker.reported_labels, &settings.labels, worker.ignore_reported_labels);
    view! {
        <fieldset class="field">
            <legend>{create.labels}<span class="field-optional">{t().common.optional}</span></legend>
            <p class="field-hint" id="labels-hint">{create.labels_hint}</p>
            <LabelInputs name="labels" typed=typed label=t().server_pages().train.label_row errors=errors/>
            <LabelSuggestions labels=fleet_labels/>
        </fieldset>
        <section class="field" aria-labelledby="reported">
            <h2 id="reported" class="font-semibold">{words.reported}</h2>
            <p class="field-hint">{words.reported_hint}</p>
            {reported}
            <div class="choice mt-3">
                <input type="checkbox" class="checkbox checkbox-sm" id="ignore" name="ignore_reported_labels" value="true"
                    checked={ignores || ignored_on_all} disabled=ignored_on_all/>
                <label for="ignore"><span class="font-medium">{words.ignore}</span><span class="choice-text">{hint}</span></label>
            </div>
        </section>
    }
    .into_erased()
}

/// The reported labels, each with the reason if it has no effect.
fn reported_labels(reported: Labels, admin_labels: &Labels, ignored: bool) -> AnyView {
    let words = &t().server_pages().worker;
    if reported.0.is_empty() {
        return view! { <p class="text-muted">{words.none_reported}</p> }.into_erased();
    }
    let row = |(key, value): (String, String)| {
        let reason = match admin_labels.0.get(&key) {
            _ if ignored => Some(words.not_counted.to_owned()),
            Some(admin_value) if *admin_value != value => Some(words.overridden.of(admin_value)),
            _ => None,
        };
        view! {
            <li class="wrap-anywhere">
                <span class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></span>
                {reason.map(|reason| view! { " " <span class="text-muted">{reason}</span> })}
            </li>
        }
    };
    view! { <ul class="space-y-1">{reported.0.into_iter().map(row).collect_view()}</ul> }.into_erased()
}
