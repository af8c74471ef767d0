//! The page that creates a worker.

use leptos::prelude::*;

use super::worker::worker_problem_page;
use crate::protocol::status::WorkerType;
use crate::protocol::workers::FleetLabels;
use crate::ui::backend::use_page_backend;
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::Icon;
use crate::ui::components::labels::{LabelInputs, LabelSuggestions};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// The fields of the forms that create and edit a worker, in their order.
pub(super) const WORKER_FIELDS: [FieldAliases<'_>; 4] = [
    ("name", &["name_taken"]),
    ("labels", &["invalid_labels"]),
    ("expires_in_days", &["expires_in_seconds"]),
    ("networks", &["allowed_networks", "invalid_network"]),
];

/// The form; the next page shows the token once.
#[component]
pub(crate) fn WorkerNewPage() -> impl IntoView {
    let page_backend = use_page_backend();
    let fleet_labels = Resource::new(|| (), move |()| page_backend.labels_for_worker_form());
    let shown = move || {
        Suspend::new(async move {
            match fleet_labels.await {
                Ok(fleet_labels) => view! { <NewWorkerForm fleet_labels=fleet_labels/> }.into_erased(),
                Err(problem) => worker_problem_page(problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn NewWorkerForm(fleet_labels: FleetLabels) -> impl IntoView {
    let words = t();
    let (problem, fields) = form_problem(FormName::Worker);
    let typed = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let kind = WorkerType::parse(&typed("worker_type"));
    let (name, labels) = (typed("name"), typed("labels"));
    let (days, networks) = (typed("expires_in_days"), typed("networks"));
    let limited = !(days.is_empty() && networks.is_empty());
    let errors = FormErrors::from_problem(problem, &WORKER_FIELDS);
    view! {
        <PageHeader title=words.server_pages().create.title above=("/admin/workers", words.workers.title) intro=words.server_pages().create.intro/>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action="/ui/workers" class="panel form">
            <Field id="name" label=words.server_pages().create.name hint=words.server_pages().create.name_hint error=errors.message("name")>
                <input
                    class="input w-full"
                    id="name"
                    name="name"
                    required=true
                    maxlength="64"
                    autocomplete="off"
                    spellcheck="false"
                    aria-describedby=errors.aria_describedby("name", Some("name-hint"))
                    aria-invalid=errors.aria_invalid("name")
                    autofocus=errors.is_first("name")
                    value=name
                />
            </Field>
            <fieldset class="field">
                <legend>{words.server_pages().create.kind}</legend>
                <p class="field-hint">{words.server_pages().create.kind_hint}</p>
                <div class="choices">
                    <Choice name="worker_type" value="persistent" checked={kind != Some(WorkerType::Ephemeral)} label=words.status.persistent text=words.server_pages().create.persistent/>
                    <Choice name="worker_type" value="ephemeral" checked={kind == Some(WorkerType::Ephemeral)} label=words.status.ephemeral text=words.server_pages().create.ephemeral/>
                </div>
            </fieldset>
            <fieldset class="field">
                <legend>{words.server_pages().create.labels}<span class="field-optional">{words.common.optional}</span></legend>
                <p class="field-hint" id="labels-hint">{words.server_pages().create.labels_hint}</p>
                <LabelInputs name="labels" typed=labels.replace(',', "\n") label=words.server_pages().train.label_row errors=errors/>
                <LabelSuggestions labels=fleet_labels/>
            </fieldset>
            <details class="fold" open=limited>
                <summary>{words.server_pages().create.advanced}</summary>
                <div class="fold-body">
                    <Field id="expires_in_days" label=words.token.days hint=words.token.days_hint optional=true error=errors.message("expires_in_days")>
                        <input class="input w-full" id="expires_in_days" name="expires_in_days" type="number" min="1" max="3660"
                            aria-describedby=errors.aria_describedby("expires_in_days", Some("expires_in_days-hint"))
                            aria-invalid=errors.aria_invalid("expires_in_days") autofocus=errors.is_first("expires_in_days") value=days/>
                    </Field>
                    <Field id="networks" label=words.server_pages().create.networks hint=words.server_pages().create.networks_hint optional=true error=errors.message("networks")>
                        <input class="input w-full font-mono" id="networks" name="networks" autocomplete="off" spellcheck="false"
                            aria-describedby=errors.aria_describedby("networks", Some("networks-hint")) aria-invalid=errors.aria_invalid("networks")
                            autofocus=errors.is_first("networks") value=networks/>
                    </Field>
                </div>
            </details>
            <div class="form-actions">
                <button class="btn btn-primary"><Icon glyph=Glyph::Plus/>{words.server_pages().create.submit}</button>
                <a class="btn btn-ghost" href="/admin/workers">{words.common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}
