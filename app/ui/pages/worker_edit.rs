//! What an admin can change of a worker. Who would write over what somebody else has changed meanwhile is told so, and
//! keeps what they typed.

use leptos::prelude::*;

use super::plain_page::plain_page;
use super::worker::unknown;
use super::{use_desk, use_port};
use crate::domain::ids::WorkerId;
use crate::domain::labels::Labels;
use crate::protocol::status::WorkerType;
use crate::protocol::workers::{FleetLabels, WorkerView};
use crate::ui::components::failure::Refusal;
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::labels::{LabelChips, LabelRows, LabelSuggestions};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::type_word;
use crate::ui::edited::{fields, form};
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// The page.
#[component]
pub(crate) fn WorkerEditPage() -> impl IntoView {
    let (port, desk) = (use_port(), use_desk());
    let ask = move |id: WorkerId| {
        let (worker, known) = (port.worker(id), desk.fleet_labels());
        // Without suggestions it is a form all the same.
        async move { Ok((worker.await?, known.await.unwrap_or_default())) }
    };
    plain_page(ask, |(worker, known)| view! { <Editing worker=worker known=known/> }.erased(), unknown)
}

#[component]
fn Editing(worker: WorkerView, known: FleetLabels) -> impl IntoView {
    let words = &t().plain().worker;
    let page = format!("/admin/workers/{}", worker.id);
    let (problem, typed) = refused(FormName::Worker);
    let overtaken = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    let filled = if problem.is_some() { typed } else { fields(&worker) };
    let filled = move |name: &str| filled.get(name).cloned().unwrap_or_default();
    let problem =
        problem.map(|problem| if overtaken { stored(&worker) } else { view! { <Refusal problem=problem/> }.erased() });
    view! {
        <PageHead title=words.edit_title.of(&worker.name) above=(page.clone(), worker.name.clone())/>
        {problem}
        <form method="post" action=form(&worker) class="panel form">
            <input type="hidden" name="revision" value=worker.revision.clone()/>
            <Named name=filled("name") kind=WorkerType::parse(&filled("worker_type"))/>
            <Labelled typed=filled("labels") known=known ignores={filled("ignore_reported_labels") == "true"} worker=worker.clone()/>
            <div class="field">
                <div class="choice">
                    <input type="checkbox" class="checkbox checkbox-sm" id="older" name="refuse_older_agents" value="true"
                        checked={filled("refuse_older_agents") == "true"}/>
                    <label for="older"><span class="font-medium">{words.older}</span><span class="choice-text">{words.older_hint}</span></label>
                </div>
            </div>
            <Field id="networks" label=t().plain().create.networks hint=t().plain().create.networks_hint optional=true>
                <input class="input w-full font-mono" id="networks" name="networks" autocomplete="off" spellcheck="false"
                    aria-describedby="networks-hint" value=filled("networks")/>
            </Field>
            <div class="form-actions">
                <button class="btn btn-primary">{t().plain().people.save}</button>
                <a class="btn btn-ghost" href=page>{t().common.cancel}</a>
            </div>
        </form>
    }
    .erased()
}

/// What is set of it now, which is not what the reader last saw.
fn stored(worker: &WorkerView) -> AnyView {
    let (words, create) = (&t().plain().worker, &t().plain().create);
    let set = worker.settings.clone().unwrap_or_default();
    let networks = worker.allowed_networks.join(", ");
    let networks = if networks.is_empty() { t().token.any_network.to_owned() } else { networks };
    view! {
        <div class="notice notice-warn" role="alert">
            <Icon glyph=Glyph::Warning/>
            <p class="grow">{words.overtaken}</p>
        </div>
        <section class="panel mb-6" aria-labelledby="stored">
            <h2 id="stored" class="panel-head">{words.stored}</h2>
            <dl class="facts">
                <div><dt>{create.name}</dt><dd>{worker.name.clone()}</dd></div>
                <div><dt>{create.kind}</dt><dd>{type_word(&t().status, worker.worker_type)}</dd></div>
                <div><dt>{create.labels}</dt><dd><LabelChips labels=set.labels list="/admin/workers" none=t().worker.no_labels/></dd></div>
                {set.ignore_reported_labels.then(|| view! { <div><dt>{words.reported}</dt><dd>{words.not_counted}</dd></div> })}
                {set.refuse_older_agents.then(|| view! { <div><dt>{words.older_agents}</dt><dd>{words.older_refused}</dd></div> })}
                <div><dt>{create.networks}</dt><dd>{networks}</dd></div>
            </dl>
        </section>
    }
    .erased()
}

#[component]
fn Named(name: String, kind: Option<WorkerType>) -> impl IntoView {
    let words = &t().plain().create;
    view! {
        <Field id="name" label=words.name hint=words.name_hint>
            <input class="input w-full" id="name" name="name" required=true maxlength="64" autocomplete="off"
                spellcheck="false" aria-describedby="name-hint" value=name/>
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
    .erased()
}

/// Its labels, and those that its agent reports, which are not to be changed here but may be left out of account.
#[component]
fn Labelled(typed: String, known: FleetLabels, ignores: bool, worker: WorkerView) -> impl IntoView {
    let (words, create) = (&t().plain().worker, &t().plain().create);
    let set = worker.settings.unwrap_or_default();
    let everywhere = worker.ignore_reported_labels && !set.ignore_reported_labels;
    let hint = if everywhere { words.ignored_everywhere } else { words.ignore_hint };
    let reported = reported(worker.reported_labels, &set.labels, worker.ignore_reported_labels);
    view! {
        <fieldset class="field">
            <legend>{create.labels}<span class="field-optional">{t().common.optional}</span></legend>
            <p class="field-hint" id="labels-hint">{create.labels_hint}</p>
            <LabelRows name="labels" typed=typed label=t().plain().train.label_row/>
            <LabelSuggestions labels=known/>
        </fieldset>
        <section class="field" aria-labelledby="reported">
            <h2 id="reported" class="font-semibold">{words.reported}</h2>
            <p class="field-hint">{words.reported_hint}</p>
            {reported}
            <div class="choice mt-3">
                <input type="checkbox" class="checkbox checkbox-sm" id="ignore" name="ignore_reported_labels" value="true"
                    checked={ignores || everywhere} disabled=everywhere/>
                <label for="ignore"><span class="font-medium">{words.ignore}</span><span class="choice-text">{hint}</span></label>
            </div>
        </section>
    }
    .erased()
}

/// Each with why it does not count, if it does not.
fn reported(reported: Labels, given: &Labels, ignored: bool) -> AnyView {
    let words = &t().plain().worker;
    if reported.0.is_empty() {
        return view! { <p class="text-muted">{words.none_reported}</p> }.erased();
    }
    let row = |(key, value): (String, String)| {
        let why = match given.0.get(&key) {
            _ if ignored => Some(words.not_counted.to_owned()),
            Some(own) if *own != value => Some(words.overridden.of(own)),
            _ => None,
        };
        view! {
            <li class="wrap-anywhere">
                <span class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></span>
                {why.map(|why| view! { " " <span class="text-muted">{why}</span> })}
            </li>
        }
    };
    view! { <ul class="space-y-1">{reported.0.into_iter().map(row).collect_view()}</ul> }.erased()
}
