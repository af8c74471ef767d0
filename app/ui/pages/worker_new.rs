//! Create Worker.

use leptos::prelude::*;

use super::use_desk;
use crate::protocol::status::WorkerType;
use crate::ui::components::failure::Refusal;
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::labels::{LabelRows, LabelSuggestions};
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// The form; the next page shows the token once.
#[component]
pub(crate) fn WorkerNewPage() -> impl IntoView {
    let words = t();
    let (problem, fields) = refused(FormName::Worker);
    let typed = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let kind = WorkerType::parse(&typed("worker_type"));
    let (name, labels) = (typed("name"), typed("labels"));
    let (days, networks) = (typed("expires_in_days"), typed("networks"));
    let desk = use_desk();
    let known = Resource::new(|| (), move |()| desk.fleet_labels());
    // Without suggestions it is a form all the same.
    let suggestions =
        move || Suspend::new(async move { known.await.ok().map(|labels| view! { <LabelSuggestions labels=labels/> }) });
    let limited = !(days.is_empty() && networks.is_empty());
    view! {
        <PageHead title=words.plain().create.title above=("/admin/workers", words.workers.title) intro=words.plain().create.intro/>
        {problem.map(|problem| view! { <Refusal problem=problem/> })}
        <form method="post" action="/ui/workers" class="panel form">
            <Field id="name" label=words.plain().create.name hint=words.plain().create.name_hint>
                <input
                    class="input w-full"
                    id="name"
                    name="name"
                    required=true
                    maxlength="64"
                    autocomplete="off"
                    spellcheck="false"
                    aria-describedby="name-hint"
                    value=name
                />
            </Field>
            <fieldset class="field">
                <legend>{words.plain().create.kind}</legend>
                <p class="field-hint">{words.plain().create.kind_hint}</p>
                <div class="choices">
                    <Choice name="worker_type" value="persistent" checked={kind != Some(WorkerType::Ephemeral)} label=words.status.persistent text=words.plain().create.persistent/>
                    <Choice name="worker_type" value="ephemeral" checked={kind == Some(WorkerType::Ephemeral)} label=words.status.ephemeral text=words.plain().create.ephemeral/>
                </div>
            </fieldset>
            <fieldset class="field">
                <legend>{words.plain().create.labels}<span class="field-optional">{words.common.optional}</span></legend>
                <p class="field-hint" id="labels-hint">{words.plain().create.labels_hint}</p>
                <LabelRows name="labels" typed=labels.replace(',', "\n") label=words.plain().train.label_row/>
                <Suspense>{suggestions}</Suspense>
            </fieldset>
            <details class="fold" open=limited>
                <summary>{words.plain().create.advanced}</summary>
                <Field id="expires_in_days" label=words.token.days hint=words.token.days_hint optional=true>
                    <input class="input w-full" id="expires_in_days" name="expires_in_days" type="number" min="1" max="3660"
                        aria-describedby="expires_in_days-hint" value=days/>
                </Field>
                <Field id="networks" label=words.plain().create.networks hint=words.plain().create.networks_hint optional=true>
                    <input class="input w-full font-mono" id="networks" name="networks" autocomplete="off" spellcheck="false"
                        aria-describedby="networks-hint" value=networks/>
                </Field>
            </details>
            <div class="form-actions">
                <button class="btn btn-primary"><Icon glyph=Glyph::Plus/>{words.plain().create.submit}</button>
                <a class="btn btn-ghost" href="/admin/workers">{words.common.cancel}</a>
            </div>
        </form>
    }
    .erased()
}
