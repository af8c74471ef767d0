//! Train in Cloud: choose a configuration and where it may run, and submit.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::{Skeleton, use_desk, use_port};
use crate::domain::access::Permission;
use crate::protocol::configs::{ConfigView, ConfigsPage};
use crate::protocol::dispatch::CheckpointPolicy;
use crate::protocol::problem::Problem;
use crate::protocol::status::Target;
use crate::protocol::workers::{WorkersPage, WorkersQuery};
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The configurations, and the workers if the reader may see them.
type Snapshot = (ConfigsPage, Option<WorkersPage>);

/// The form that submits a job.
#[component]
pub(crate) fn TrainPage() -> impl IntoView {
    let words = &t().plain().train;
    let (port, desk) = (use_port(), use_desk());
    let sees_workers = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminWorkers));
    let snapshot = Resource::new(
        || (),
        move |()| {
            let (port, desk) = (port.clone(), desk.clone());
            async move {
                let workers = if sees_workers { Some(port.workers(WorkersQuery::default()).await?) } else { None };
                Ok::<Snapshot, Problem>((desk.configs().await?, workers))
            }
        },
    );
    let shown = move || {
        Suspend::new(async move {
            match snapshot.await {
                Ok((configs, workers)) if !configs.configs.is_empty() => {
                    view! { <Submit configs=configs workers=workers/> }.erased()
                }
                Ok(_) => view! {
                    <div class="panel">
                        <Empty glyph=Glyph::File title=words.none text=words.none_hint>
                            <code class="font-mono text-sm">"PUT /api/configs/{name}"</code>
                        </Empty>
                    </div>
                }
                .erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn Submit(configs: ConfigsPage, workers: Option<WorkersPage>) -> impl IntoView {
    let words = t();
    let (problem, fields) = refused(FormName::Job);
    let asked = use_query_map().with_untracked(|query| query.get("config"));
    let chosen = fields.get("config_name").cloned().or(asked).unwrap_or_else(|| configs.configs[0].name.clone());
    let typed = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let target = Target::parse(&typed("target")).unwrap_or(Target::Worker);
    let checkpoints = CheckpointPolicy::parse(&typed("checkpoints")).unwrap_or_default();
    let exclusive = typed("exclusive") == "true";
    let (gpu_count, labels) = (typed("gpu_count"), typed("worker_labels"));
    let retries = fields.get("max_retries").cloned().unwrap_or_else(|| "3".to_owned());
    let choices = configs
        .configs
        .into_iter()
        .map(|config| {
            let checked = config.name == chosen;
            view! { <ConfigChoice config=config checked=checked/> }
        })
        .collect_view();
    view! {
        {problem.map(|problem| view! { <Refusal problem=problem/> })}
        <form method="post" action="/ui/jobs" class="train-grid">
            <section class="panel" aria-labelledby="configs">
                <h2 id="configs" class="panel-head">{words.plain().train.configuration}</h2>
                <div class="config-list" role="radiogroup" aria-labelledby="configs">{choices}</div>
            </section>
            <section class="panel form" aria-labelledby="where">
                <fieldset class="field">
                    <legend id="where">{words.plain().train.target}</legend>
                    <div class="choices">
                        <Choice name="target" value="worker" checked={target == Target::Worker} label=words.status.target_worker text=words.plain().train.target_worker/>
                        <Choice name="target" value="auto" checked={target == Target::Auto} label=words.status.target_auto text=words.plain().train.target_auto/>
                        <Choice name="target" value="local" checked={target == Target::Local} label=words.status.target_local text=words.plain().train.target_local/>
                    </div>
                </fieldset>
                {workers.clone().map(|workers| view! { <Fleet workers=workers/> })}
                <Field id="gpu_count" label=words.plain().train.gpu_count hint=words.plain().train.gpu_count_hint optional=true>
                    <input class="input w-28" id="gpu_count" name="gpu_count" type="number" min="1" max="64" inputmode="numeric" aria-describedby="gpu_count-hint" value=gpu_count/>
                </Field>
                <Field id="worker_labels" label=words.plain().train.labels hint=words.plain().train.labels_hint optional=true>
                    <textarea
                        class="textarea w-full font-mono"
                        id="worker_labels"
                        name="worker_labels"
                        rows="2"
                        spellcheck="false"
                        aria-describedby="worker_labels-hint"
                        placeholder=words.plain().train.labels_example
                        prop:value=labels
                    ></textarea>
                    {workers.map(|workers| view! { <KnownLabels workers=workers/> })}
                </Field>
                <details class="fold">
                    <summary>{words.plain().train.advanced}</summary>
                    <Field id="max_retries" label=words.plain().train.retries hint=words.plain().train.retries_hint>
                        <input class="input w-28" id="max_retries" name="max_retries" type="number" min="0" max="20" inputmode="numeric" aria-describedby="max_retries-hint" value=retries/>
                    </Field>
                    <Field id="checkpoints" label=words.plain().train.checkpoints hint=words.plain().train.checkpoints_hint>
                        <select class="select w-full" id="checkpoints" name="checkpoints" aria-describedby="checkpoints-hint">
                            <option value="last" selected={checkpoints == CheckpointPolicy::Last}>{words.plain().train.checkpoints_last}</option>
                            <option value="all" selected={checkpoints == CheckpointPolicy::All}>{words.plain().train.checkpoints_all}</option>
                            <option value="none" selected={checkpoints == CheckpointPolicy::None}>{words.plain().train.checkpoints_none}</option>
                        </select>
                    </Field>
                    <div class="choice">
                        <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id="exclusive" name="exclusive" value="true" checked=exclusive/>
                        <label for="exclusive">
                            <span class="font-medium">{words.plain().train.exclusive}</span>
                            <span class="choice-text">{words.plain().train.exclusive_text}</span>
                        </label>
                    </div>
                </details>
                <div class="form-actions">
                    <button class="btn btn-primary"><Icon glyph=Glyph::Train/>{words.plain().train.submit}</button>
                </div>
            </section>
        </form>
    }
    .erased()
}

#[component]
fn ConfigChoice(config: ConfigView, checked: bool) -> impl IntoView {
    let words = &t().plain().train;
    let id = format!("config-{}", config.name);
    let summary = config.summary.into_iter().map(|(key, value)| {
        view! { <span class="chip"><span class="text-muted">{key}"="</span>{value}</span> }
    });
    view! {
        <div class="config-choice">
            <input type="radio" class="radio radio-sm radio-primary" id=id.clone() name="config_name" value=config.name.clone() checked=checked required=true/>
            <label for=id>
                <span class="flex flex-wrap items-baseline justify-between gap-x-3">
                    <span class="font-medium">{config.name}</span>
                    <span class="text-xs text-muted">
                        {words.revision.of(config.revision)}" · "{words.files.of(config.files.len() as u64)}" · "<Moment at=config.updated_at/>
                    </span>
                </span>
                <span class="mt-1.5 flex flex-wrap gap-1">{summary.collect_view()}</span>
            </label>
        </div>
    }
    .erased()
}

/// How the fleet stands, so that nobody is surprised by a job that waits.
#[component]
fn Fleet(workers: WorkersPage) -> impl IntoView {
    let words = &t().plain().train;
    let counts = workers.counts;
    let text = if workers.total == 0 {
        words.fleet_empty.to_owned()
    } else {
        let away = counts.offline + counts.connecting + counts.draining;
        words.fleet.with(&[&counts.idle, &counts.busy, &away])
    };
    view! { <p class="fleet-now"><Icon glyph=Glyph::Workers/><span class="font-medium">{words.fleet_now}</span><span class="text-muted">{text}</span></p> }.erased()
}

/// The labels that workers have, to choose from.
#[component]
fn KnownLabels(workers: WorkersPage) -> impl IntoView {
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in workers.workers.into_iter().flat_map(|worker| worker.labels.0) {
        known.entry(key).or_default().insert(value);
    }
    let entries = known.into_iter().take(8).map(|(key, values)| {
        let values: Vec<_> = values.into_iter().take(6).collect();
        view! { <li class="chip"><span class="text-muted">{key}"="</span>{values.join(" | ")}</li> }
    });
    let entries = entries.collect_view();
    (!entries.is_empty()).then(|| {
        view! {
            <p class="mt-2 text-xs text-muted" id="known">{t().plain().train.known_labels}</p>
            <ul class="mt-1 flex flex-wrap gap-1" aria-labelledby="known">{entries}</ul>
        }
    })
}
