//! Train in Cloud: select a configuration and its requirements, preview the result, and submit.
//!
//! The fields of the form are the query of the address: `/train?config=…&gpus=2&labels=team%3Dnlp`. So the form can be
//! linked, and its check button works without JavaScript; with JavaScript ([`crate::ui::browser`]), the preview is
//! updated while the user types.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::configs::NoConfigs;
use super::train_changes::{OverrideFields, RevisionChoice, UnseenChanges};
use super::train_form_fields::TrainFormFields;
use crate::protocol::configs::{ConfigDetail, ConfigView, ConfigsPage};
use crate::protocol::jobs::JobsQuery;
use crate::protocol::problem::Problem;
use crate::protocol::secrets::SecretsPage;
use crate::protocol::status::Target;
use crate::protocol::workers::FleetLabels;
use crate::ui::backend::{SubmitDraft, use_backend, use_page_backend};
use crate::ui::components::code::FileText;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::field::Choice;
use crate::ui::components::icon::Icon;
use crate::ui::components::labels::{LabelInputs, LabelSuggestions};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::submit_control::submit_control;
use crate::ui::components::submit_preview::{SubmitPreview, ViewFilesLink};
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::FormErrors;
use crate::ui::format::config_url;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::submit_form::{Section, SubmitField, fields_of, fields_with_errors};

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
                let config_name = draft.fields.get("config").cloned().unwrap_or_default();
                let last_run = match &draft.unseen_change {
                    Some(unseen) => page_backend.config(config_name.clone(), Some(unseen.last_run)).await.ok(),
                    None => None,
                };
                let retried = match draft.retried_revision {
                    Some(revision) => page_backend.config(config_name.clone(), Some(revision)).await.ok(),
                    None => None,
                };
                Ok::<_, Problem>(Snapshot {
                    newest: if retried.is_some() {
                        page_backend.config(config_name.clone(), None).await.ok()
                    } else {
                        None
                    },
                    retried,
                    configs: page_backend.configs().await?,
                    // If it does not exist, the draft reports that.
                    selected: page_backend.config(config_name, draft.pinned_revision).await.ok(),
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
                    let preview_problem =
                        || snapshot.draft.preview.as_ref().err().filter(|problem| !problem.errors.is_empty()).cloned();
                    let errors =
                        FormErrors::from_problem(submit_problem.or_else(preview_problem), &fields_with_errors());
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

#[component]
fn SubmitForm(snapshot: Snapshot, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().train;
    let Snapshot { configs, selected, labels, secrets, draft, last_run, retried, newest, .. } = snapshot;
    let pinned = draft.pinned_revision;
    let fields = TrainFormFields(draft.fields);
    let changed = selected.clone().zip(last_run).zip(draft.unseen_change).map(|((shown, earlier), unseen)| {
        view! { <UnseenChanges fields=fields.clone() shown=shown earlier=earlier unseen=unseen/> }
    });
    let newer = retried
        .zip(newest)
        .zip(pinned)
        .filter(|((retried, newest), _)| retried.config.revision != newest.config.revision);
    let newer = newer
        .map(|((retried, newest), pinned)| view! { <RevisionChoice pinned=pinned retried=retried newest=newest/> });
    let name = fields.text("config");
    let selected_view = selected.as_ref().map(|selected| &selected.config);
    let choices = configs.configs.into_iter().enumerate().map(|(index, config)| {
        let checked = config.name == name;
        // The selected revision may not be the newest one.
        let config = selected_view.filter(|_| checked).cloned().unwrap_or(config);
        view! { <ConfigChoice index=index config=config checked=checked/> }
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
                <section class="panel form" aria-labelledby="description">
                    <h2 id="description" class="panel-title">{words.description}</h2>
                    {controls(Section::Description, &fields, errors)}
                </section>
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
fn ConfigChoice(index: usize, config: ConfigView, checked: bool) -> impl IntoView {
    let words = &t().server_pages().train;
    let id = format!("config-{}", config.name);
    let summary = config.summary.into_iter().map(|(key, value)| {
        view! { <span class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></span> }
    });
    view! {
        <div class="config-choice">
            <input type="radio" class="radio radio-sm radio-primary" id=id.clone() name="config" value=config.name.clone() checked=checked required=true/>
            <label for=id data-part=format!("choice-{index}")>
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

/// The controls of a section.
fn controls(section: Section, fields: &TrainFormFields, errors: FormErrors) -> Vec<AnyView> {
    let control =
        |field: &'static SubmitField| submit_control(field, fields.text_or(field.name, &field.default_text()), errors);
    fields_of(section).map(control).collect()
}

/// Where the job may run, and what a worker must have.
#[component]
fn RequirementFields(fields: TrainFormFields, labels: FleetLabels, errors: FormErrors) -> impl IntoView {
    let (words, status) = (&t().server_pages().train, &t().status);
    let target = Target::parse(&fields.text("target")).unwrap_or(Target::Worker);
    let local_text = if labels.local { words.target_local } else { words.target_local_missing };
    view! {
        <fieldset class="field">
            <legend>{words.target}</legend>
            <div class="choices">
                <Choice name="target" value="worker" checked={target == Target::Worker} label=status.target_worker text=words.target_worker/>
                <Choice name="target" value="auto" checked={target == Target::Auto} label=status.target_auto text=words.target_auto/>
                <Choice name="target" value="local" checked={target == Target::Local} label=status.target_local text=local_text disabled={!labels.local && target != Target::Local}/>
            </div>
        </fieldset>
        <div class="needs">{controls(Section::Requirements, &fields, errors)}</div>
        <fieldset class="field">
            <legend>{words.labels}<span class="field-optional">{t().common.optional}</span></legend>
            <p class="field-hint" id="labels-hint">{words.labels_hint}</p>
            <LabelInputs name="labels" typed=fields.text("labels").replace(',', "\n") label=words.label_row errors=errors/>
            <LabelSuggestions labels=labels/>
        </fieldset>
    }
    .into_erased()
}

/// Limits of the job, and its other advanced settings.
#[component]
fn LimitFields(fields: TrainFormFields, errors: FormErrors) -> impl IntoView {
    let mut all = fields_of(Section::Limits).chain(fields_of(Section::Behavior));
    let open = all.any(|field| fields.is_changed(field) || errors.has_any(&[field.name]));
    view! {
        <details class="fold" open=open>
            <summary>{t().server_pages().train.advanced}</summary>
            <div class="fold-body">
                <div class="needs">{controls(Section::Limits, &fields, errors)}</div>
                {controls(Section::Behavior, &fields, errors)}
            </div>
        </details>
    }
    .into_erased()
}

/// Selects the secrets for the job.
#[component]
fn SecretFields(fields: TrainFormFields, secrets: SecretsPage) -> impl IntoView {
    let words = &t().server_pages().train;
    let selected = fields.text("secret");
    let has_selection = !selected.is_empty();
    let mut names: Vec<String> = secrets.secrets.into_iter().map(|secret| secret.name).collect();
    names.dedup();
    let is_empty = names.is_empty();
    let boxes = names.into_iter().map(|name| {
        let (id, checked) = (format!("secret-{name}"), selected.lines().any(|line| line == name));
        view! {
            <span class="tick">
                <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id=id.clone() name="secret" value=name.clone() checked=checked/>
                <label class="font-mono" for=id>{name}</label>
            </span>
        }
    });
    let boxes = boxes.collect_view();
    view! {
        <details class="fold" open=has_selection>
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
