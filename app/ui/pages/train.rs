//! Train in Cloud: select a configuration and its requirements, preview the result, and submit.
//!
//! The fields of the form are the query of the address: `/train?config=…&gpus=2&labels=team%3Dnlp`. So the form can be
//! linked, and its check button works without JavaScript; with JavaScript ([`crate::ui::browser`]), the preview is
//! updated while the user types.

use std::collections::BTreeMap;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::configs::NoConfigs;
use super::train_changes::{OverrideFields, RevisionChoice, UnseenChanges};
use super::{Skeleton, use_backend, use_page_backend};
use crate::domain::sandbox::SandboxLevel;
use crate::protocol::agents::dispatch::CheckpointPolicy;
use crate::protocol::configs::{ConfigDetail, ConfigView, ConfigsPage};
use crate::protocol::jobs::JobsQuery;
use crate::protocol::problem::Problem;
use crate::protocol::secrets::SecretsPage;
use crate::protocol::status::Target;
use crate::protocol::workers::FleetLabels;
use crate::ui::backend::SubmitDraft;
use crate::ui::components::code::FileText;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::field::{Choice, Field};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::labels::{LabelInputs, LabelSuggestions};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::submit_preview::{SubmitPreview, ViewFilesLink};
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::format::config_url;
use crate::ui::i18n::t;

/// The data of the page.
struct Snapshot {
    configs: ConfigsPage,
    /// The selected configuration.
    selected: Option<ConfigDetail>,
    labels: FleetLabels,
    secrets: SecretsPage,
    draft: SubmitDraft,
    /// The revision that the user ran last, if others have changed the configuration since.
    last_run: Option<ConfigDetail>,
    /// The revision that the retried job ran.
    retried: Option<ConfigDetail>,
    /// The newest revision, to compare with the one of the retried job.
    newest: Option<ConfigDetail>,
    /// Whether new jobs are rejected because the disk is full.
    disk_full: bool,
}

/// The fields of the form, in their order.
const TRAIN_FIELDS: [FieldAliases<'_>; 8] = [
    ("gpus", &["gpu_count"]),
    ("min_vram", &["min_vram_gb"]),
    ("accelerator", &["accelerator_type"]),
    ("labels", &["worker_labels", "invalid_labels"]),
    ("overrides", &[]),
    ("priority", &[]),
    ("max_runtime", &["max_runtime_seconds"]),
    ("max_retries", &[]),
];

/// The page with the form that submits a job.
#[component]
pub(crate) fn TrainPage() -> impl IntoView {
    let words = &t().server_pages().train;
    let (backend, page_backend) = (use_backend(), use_page_backend());
    let (problem, typed) = form_problem(FormName::Job);
    let query = use_location().search.get_untracked();
    let submit_problem = problem.clone();
    let shown = move || {
        let (backend, page_backend, query, submit_problem) =
            (backend.clone(), page_backend.clone(), query.clone(), submit_problem.clone());
        let typed = problem.is_some().then(|| typed.clone());
        Suspend::new(async move {
            let found = async {
                let draft = page_backend.draft(query, typed).await?;
                let named = draft.fields.get("config").cloned().unwrap_or_default();
                let last_run = match &draft.unseen_change {
                    Some(unseen) => page_backend.config(named.clone(), Some(unseen.last_run)).await.ok(),
                    None => None,
                };
                let retried = match draft.retried_revision {
                    Some(ran) => page_backend.config(named.clone(), Some(ran)).await.ok(),
                    None => None,
                };
                Ok::<_, Problem>(Snapshot {
                    newest: if retried.is_some() { page_backend.config(named.clone(), None).await.ok() } else { None },
                    retried,
                    configs: page_backend.configs().await?,
                    // If it does not exist, the draft reports that.
                    selected: page_backend.config(named, draft.pinned_revision).await.ok(),
                    labels: page_backend.fleet_labels().await?,
                    secrets: page_backend.secrets().await?,
                    draft,
                    last_run,
                    disk_full: backend.jobs(JobsQuery { limit: Some(1), ..JobsQuery::default() }).await?.disk_full,
                })
            };
            match found.await {
                Ok(snapshot) if snapshot.configs.configs.is_empty() => {
                    view! { <div class="panel"><NoConfigs/></div> }.into_erased()
                }
                Ok(snapshot) => {
                    // The errors of a check are shown next to the fields too, not only in the preview.
                    let checked =
                        || snapshot.draft.preview.as_ref().err().filter(|problem| !problem.errors.is_empty()).cloned();
                    let errors = FormErrors::from_problem(submit_problem.or_else(checked), &TRAIN_FIELDS);
                    view! {
                        {snapshot.disk_full.then(|| view! { <DiskFull/> })}
                        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
                        <SubmitForm snapshot=snapshot errors=errors/>
                    }
                    .into_erased()
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// The values of the form.
#[derive(Clone)]
pub(super) struct TrainFormFields(BTreeMap<String, String>);

impl TrainFormFields {
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn text_or(&self, name: &str, usual: &str) -> String {
        self.0.get(name).filter(|text| !text.is_empty()).map_or_else(|| usual.to_owned(), Clone::clone)
    }

    fn is_set(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Whether any of these fields differs from its default.
    fn differs_from(&self, usual: &[(&str, &str)]) -> bool {
        usual.iter().any(|(name, usual)| self.text_or(name, usual) != *usual)
    }
}

#[component]
fn SubmitForm(snapshot: Snapshot, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().train;
    let Snapshot { configs, selected, labels, secrets, draft, last_run, retried, newest, .. } = snapshot;
    let pinned = draft.pinned_revision;
    let fields = TrainFormFields(draft.fields);
    let changed = selected.clone().zip(last_run).zip(draft.unseen_change).map(|((shown, earlier), unseen)| {
        view! { <UnseenChanges fields=fields.clone() shown=shown earlier=earlier unseen=unseen/> }
    });
    let newer =
        retried.zip(newest).zip(pinned).filter(|((ran, newest), _)| ran.config.revision != newest.config.revision);
    let newer = newer.map(|((ran, newest), pinned)| view! { <RevisionChoice pinned=pinned ran=ran newest=newest/> });
    let name = fields.text("config");
    let of_chosen = selected.as_ref().map(|selected| &selected.config);
    let choices = configs.configs.into_iter().enumerate().map(|(place, config)| {
        let checked = config.name == name;
        // The selected revision may not be the newest one.
        let config = of_chosen.filter(|_| checked).cloned().unwrap_or(config);
        view! { <ConfigChoice place=place config=config checked=checked/> }
    });
    let choices = choices.collect_view();
    view! {
        <form method="post" action="/ui/jobs" class="train-grid" data-live="/train">
            <div class="min-w-0 space-y-6">
                <section class="panel" aria-labelledby="configs">
                    <h2 id="configs" class="panel-head">{words.configuration}</h2>
                    <div class="config-list" role="radiogroup" aria-labelledby="configs">{choices}</div>
                    <details class="fold content-fold">
                        <summary>{words.content}</summary>
                        <div data-part="content">{selected.map(|chosen| view! { <ConfigContents chosen=chosen/> })}</div>
                    </details>
                </section>
                <div data-part="changed">{changed}{newer}</div>
                <section class="panel form" aria-labelledby="needs">
                    <h2 id="needs" class="panel-title">{words.requirements}</h2>
                    <RequirementFields fields=fields.clone() labels=labels errors=errors/>
                    <OverrideFields fields=fields.clone() errors=errors/>
                    <LimitFields fields=fields.clone() errors=errors/>
                    <SecretFields fields=fields secrets=secrets/>
                </section>
            </div>
            <SubmitPreview outcome=draft.preview>
                <button class="btn btn-primary"><Icon glyph=Glyph::Train/>{words.submit}</button>
                <button class="btn" formmethod="get" formaction="/train" formnovalidate>{words.check}</button>
            </SubmitPreview>
        </form>
    }
    .into_erased()
}

#[component]
fn ConfigChoice(place: usize, config: ConfigView, checked: bool) -> impl IntoView {
    let words = &t().server_pages().train;
    let id = format!("config-{}", config.name);
    let summary = config.summary.into_iter().map(|(key, value)| {
        view! { <span class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></span> }
    });
    view! {
        <div class="config-choice">
            <input type="radio" class="radio radio-sm radio-primary" id=id.clone() name="config" value=config.name.clone() checked=checked required=true/>
            <label for=id data-part=format!("choice-{place}")>
                <span class="flex flex-wrap items-baseline justify-between gap-x-3">
                    <span class="font-medium">{config.name.clone()}</span>
                    <span class="text-xs text-muted">
                        {words.revision.of(config.revision)}" · "{words.files.of(config.files.len() as u64)}" · "<RelativeTime at=config.updated_at/>
                    </span>
                </span>
                <span class="mt-1.5 flex flex-wrap gap-1">{summary.collect_view()}</span>
            </label>
            <ViewFilesLink href=config_url(&config.name) name=config.name.clone()/>
        </div>
    }
    .into_erased()
}

/// The files of the selected configuration.
#[component]
fn ConfigContents(chosen: ConfigDetail) -> impl IntoView {
    let files = chosen.bundle.files.into_iter().map(|(name, text)| {
        view! { <h3 class="content-name">{name.clone()}</h3> <FileText name=name text=text/> }
    });
    files.collect_view()
}

/// Where the job may run, and what a worker must have.
#[component]
fn RequirementFields(fields: TrainFormFields, labels: FleetLabels, errors: FormErrors) -> impl IntoView {
    let (words, status) = (&t().server_pages().train, &t().status);
    let target = Target::parse(&fields.text("target")).unwrap_or(Target::Worker);
    let local_text = if labels.local { words.target_local } else { words.target_local_missing };
    let (gpus, min_vram, accelerator) = (fields.text("gpus"), fields.text("min_vram"), fields.text("accelerator"));
    let kinds = ["cuda", "rocm", "mps", "xpu", "cpu"].map(|kind| {
        let selected = accelerator == kind;
        view! { <option value=kind selected=selected>{kind}</option> }
    });
    view! {
        <fieldset class="field">
            <legend>{words.target}</legend>
            <div class="choices">
                <Choice name="target" value="worker" checked={target == Target::Worker} label=status.target_worker text=words.target_worker/>
                <Choice name="target" value="auto" checked={target == Target::Auto} label=status.target_auto text=words.target_auto/>
                <Choice name="target" value="local" checked={target == Target::Local} label=status.target_local text=local_text disabled={!labels.local && target != Target::Local}/>
            </div>
        </fieldset>
        <div class="needs">
            <Field id="gpus" label=words.gpu_count hint=words.gpu_count_hint error=errors.message("gpus")>
                <input class="input w-full" id="gpus" name="gpus" type="number" min="1" max="64" inputmode="numeric"
                    aria-describedby=errors.aria_describedby("gpus", Some("gpus-hint")) aria-invalid=errors.aria_invalid("gpus") autofocus=errors.is_first("gpus") value=gpus/>
            </Field>
            <Field id="min_vram" label=words.min_vram hint=words.min_vram_hint error=errors.message("min_vram")>
                <input class="input w-full" id="min_vram" name="min_vram" type="number" min="0.1" step="any" inputmode="decimal"
                    aria-describedby=errors.aria_describedby("min_vram", Some("min_vram-hint")) aria-invalid=errors.aria_invalid("min_vram") autofocus=errors.is_first("min_vram") value=min_vram/>
            </Field>
            <Field id="accelerator" label=words.accelerator error=errors.message("accelerator")>
                <select class="select w-full" id="accelerator" name="accelerator" aria-describedby=errors.aria_describedby("accelerator", None)
                    aria-invalid=errors.aria_invalid("accelerator") autofocus=errors.is_first("accelerator")><option value="">{words.any}</option>{kinds}</select>
            </Field>
        </div>
        <fieldset class="field">
            <legend>{words.labels}<span class="field-optional">{t().common.optional}</span></legend>
            <p class="field-hint" id="labels-hint">{words.labels_hint}</p>
            <LabelInputs name="labels" typed=fields.text("labels").replace(',', "\n") label=words.label_row errors=errors/>
            <LabelSuggestions labels=labels/>
        </fieldset>
    }
    .into_erased()
}

/// Priority, maximum run time, retries, and sandbox.
#[component]
fn LimitFields(fields: TrainFormFields, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().train;
    let checkpoints = CheckpointPolicy::parse(&fields.text("checkpoints")).unwrap_or_default();
    let sandbox = SandboxLevel::parse(&fields.text("sandbox")).unwrap_or_default();
    let usual = [
        ("priority", "10"),
        ("max_runtime", ""),
        ("max_retries", "3"),
        ("retry_on_failure", ""),
        ("exclusive", ""),
        ("sandbox", "none"),
        ("checkpoints", "last"),
    ];
    let open = fields.differs_from(&usual) || errors.has_any(&["priority", "max_runtime", "max_retries"]);
    let (priority, runtime, retries) =
        (fields.text_or("priority", "10"), fields.text("max_runtime"), fields.text_or("max_retries", "3"));
    view! {
        <details class="fold" open=open>
            <summary>{words.advanced}</summary>
            <div class="fold-body">
                <div class="needs">
                    <Field id="priority" label=words.priority hint=words.priority_hint error=errors.message("priority")>
                        <input class="input w-full" id="priority" name="priority" type="number" min="0" max="50" inputmode="numeric"
                    aria-describedby=errors.aria_describedby("priority", Some("priority-hint")) aria-invalid=errors.aria_invalid("priority") autofocus=errors.is_first("priority") value=priority/>
                    </Field>
                    <Field id="max_runtime" label=words.runtime hint=words.runtime_hint error=errors.message("max_runtime")>
                        <input class="input w-full" id="max_runtime" name="max_runtime" autocomplete="off" spellcheck="false"
                    aria-describedby=errors.aria_describedby("max_runtime", Some("max_runtime-hint")) aria-invalid=errors.aria_invalid("max_runtime") autofocus=errors.is_first("max_runtime") value=runtime/>
                    </Field>
                    <Field id="max_retries" label=words.retries hint=words.retries_hint error=errors.message("max_retries")>
                        <input class="input w-full" id="max_retries" name="max_retries" type="number" min="0" max="100" inputmode="numeric"
                    aria-describedby=errors.aria_describedby("max_retries", Some("max_retries-hint")) aria-invalid=errors.aria_invalid("max_retries") autofocus=errors.is_first("max_retries") value=retries/>
                    </Field>
                </div>
                <Checkbox name="retry_on_failure" checked=fields.is_set("retry_on_failure") label=words.retry_on_failure text=words.retry_on_failure_text/>
                <Field id="checkpoints" label=words.checkpoints hint=words.checkpoints_hint>
                    <select class="select w-full" id="checkpoints" name="checkpoints" aria-describedby="checkpoints-hint">
                        <option value="last" selected={checkpoints == CheckpointPolicy::Last}>{words.checkpoints_last}</option>
                        <option value="all" selected={checkpoints == CheckpointPolicy::All}>{words.checkpoints_all}</option>
                        <option value="none" selected={checkpoints == CheckpointPolicy::None}>{words.checkpoints_none}</option>
                    </select>
                </Field>
                <Field id="sandbox" label=words.sandbox hint=words.sandbox_hint>
                    <select class="select w-full" id="sandbox" name="sandbox" aria-describedby="sandbox-hint">
                        <option value="none" selected={sandbox == SandboxLevel::None}>{words.sandbox_none}</option>
                        <option value="files" selected={sandbox == SandboxLevel::Files}>{words.sandbox_files}</option>
                        <option value="full" selected={sandbox == SandboxLevel::Full}>{words.sandbox_full}</option>
                    </select>
                </Field>
                <Checkbox name="exclusive" checked=fields.is_set("exclusive") label=words.exclusive text=words.exclusive_text/>
            </div>
        </details>
    }
    .into_erased()
}

#[component]
fn Checkbox(name: &'static str, checked: bool, label: &'static str, text: &'static str) -> impl IntoView {
    view! {
        <div class="choice">
            <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id=name name=name value="true" checked=checked/>
            <label for=name><span class="font-medium">{label}</span><span class="choice-text">{text}</span></label>
        </div>
    }
    .into_erased()
}

/// Selects the secrets for the job.
#[component]
fn SecretFields(fields: TrainFormFields, secrets: SecretsPage) -> impl IntoView {
    let words = &t().server_pages().train;
    let ticked = fields.text("secret");
    let some = !ticked.is_empty();
    let mut names: Vec<String> = secrets.secrets.into_iter().map(|secret| secret.name).collect();
    names.dedup();
    let is_empty = names.is_empty();
    let boxes = names.into_iter().map(|name| {
        let (id, checked) = (format!("secret-{name}"), ticked.lines().any(|one| one == name));
        view! {
            <span class="tick">
                <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id=id.clone() name="secret" value=name.clone() checked=checked/>
                <label class="font-mono" for=id>{name}</label>
            </span>
        }
    });
    let boxes = boxes.collect_view();
    view! {
        <details class="fold" open=some>
            <summary>{words.secrets}</summary>
            <div class="fold-body">
                <p class="field-hint">{words.secrets_hint}</p>
                <div class="ticks">{boxes}</div>
                {is_empty.then(|| view! { <p class="text-muted">{words.secrets_none}" "<a class="quiet-link" href="/secrets">{t().nav.secrets}</a></p> })}
            </div>
        </details>
    }
    .into_erased()
}
