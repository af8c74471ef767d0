//! The form for a new configuration, or for a new revision of an existing one.

use std::collections::BTreeMap;

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_query_map};

use super::config_files::{FileSections, FormFile, MAX_TEXT_BYTES};
use crate::domain::config_files::CONFIG_FILE;
use crate::protocol::configs::{ConfigBundle, ConfigDetail, file_field};
use crate::protocol::percent_encoding;
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::configs::findings::FindingWords;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors, error_id};
use crate::ui::format::config_url;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

/// The initial text of a new configuration.
const NEW_FILE_TEXT: &str = "{\n}\n";
/// The maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// The page that creates a configuration.
#[component]
pub(crate) fn ConfigNewPage() -> impl IntoView {
    let words = &t().server_pages().configs;
    let page_backend = use_page_backend();
    let (problem, typed) = form_problem(FormName::Config);
    let (from, revision) = use_query_map()
        .with_untracked(|query| (query.get("from"), query.get("revision").and_then(|revision| revision.parse().ok())));
    let source = Resource::new(
        || (),
        move |()| {
            let (page_backend, from) = (page_backend.clone(), from.clone());
            async move {
                // Fails without the permission.
                page_backend.editable_config(None).await?;
                match from {
                    Some(from) => page_backend.config(from, revision).await.map(Some),
                    None => Ok(None),
                }
            }
        },
    );
    let shown = move || {
        let (problem, typed) = (problem.clone(), typed.clone());
        Suspend::new(async move {
            match source.await {
                Ok(source) => view! { <NewConfigForm source=source problem=problem typed=typed/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.new above=("/configs", words.title) intro=words.new_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn NewConfigForm(
    /// The configuration to copy.
    source: Option<ConfigDetail>,
    problem: Option<Problem>,
    typed: BTreeMap<String, String>,
) -> impl IntoView {
    let words = &t().server_pages().configs;
    if source.as_ref().is_some_and(|source| is_too_large(&source.bundle)) {
        return too_large_panel();
    }
    let copy_intro = source.as_ref().map(|source| {
        let text = words.copy_of.with(&[&source.config.name, &source.config.revision]);
        view! { <div class="notice"><Icon glyph=Glyph::Copy/><p class="grow wrap-anywhere">{text}</p></div> }
    });
    let copy_name = source.as_ref().map(|source| truncate_name(&words.copy_name.of(&source.config.name)));
    let name = typed.get("name").cloned().or(copy_name).unwrap_or_default();
    let is_taken = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    let taken_error = is_taken.then(|| {
        let existing_config_url = format!("{}/edit", config_url(&name));
        view! {
            <p class="field-error" id="name-error" role="alert">{words.taken}" "<a class="quiet-link" href=existing_config_url>{name.clone()}</a></p>
        }
    });
    let mut files = typed_files(&typed);
    if files.is_empty() {
        files = match source {
            Some(source) => bundle_files(source.bundle),
            None => vec![FormFile::new(CONFIG_FILE, NEW_FILE_TEXT)],
        };
    }
    let errors = form_errors(problem.filter(|_| !is_taken), &files);
    let is_invalid = is_taken || errors.has_any(&["name"]);
    view! {
        {copy_intro}
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action="/ui/configs" class="config-form" data-editor-words=editor_words()>
            <section class="panel form">
                <Field id="name" label=words.name error=errors.message("name")>
                    <input class="input w-full" id="name" name="name" required=true maxlength=MAX_NAME_LENGTH.to_string() autocomplete="off" spellcheck="false"
                        aria-invalid=is_invalid.then_some("true") aria-describedby=is_invalid.then(|| error_id("name"))
                        autofocus={is_taken || errors.is_first("name")} value=name.clone()/>
                    {taken_error}
                </Field>
            </section>
            <FileSections files=files errors=errors/>
            <FormActions back="/configs".to_owned()/>
        </form>
    }
    .into_erased()
}

/// The page that edits a configuration.
#[component]
pub(crate) fn ConfigEditPage() -> impl IntoView {
    let words = &t().server_pages().configs;
    // The router would decode it a second time.
    let path = use_location().pathname.get_untracked();
    let name = percent_encoding::decode(path.trim_end_matches("/edit").rsplit('/').next().unwrap_or_default());
    let page_backend = use_page_backend();
    let (problem, typed) = form_problem(FormName::Config);
    let newest = Resource::new(|| (), {
        let name = name.clone();
        move |()| page_backend.editable_config(Some(name.clone()))
    });
    let shown = move || {
        let (problem, typed) = (problem.clone(), typed.clone());
        Suspend::new(async move {
            match newest.await {
                Ok(newest) => newest
                    .map(|newest| view! { <EditConfigForm newest=newest problem=problem typed=typed/> })
                    .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    let above = (config_url(&name), name.clone());
    view! {
        <PageHeader title=words.edit_title.of(&name) above=above intro=words.edit_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn EditConfigForm(newest: ConfigDetail, problem: Option<Problem>, typed: BTreeMap<String, String>) -> impl IntoView {
    let words = &t().server_pages().configs;
    let ConfigDetail { config, bundle } = newest;
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let can_edit = prefs.can_change_config(config.owner.as_deref());
    if is_too_large(&bundle) {
        return too_large_panel();
    }
    let is_outdated = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    // After this warning, the user may store their text as the revision after the newest one.
    let conflict_notice = is_outdated.then(|| {
        let submitted_revision = typed.get("revision").cloned();
        let query = [("revision", Some(config.revision.to_string())), ("against", submitted_revision)];
        let changes = config_url(&config.name) + &query_string(&query);
        view! {
            <div class="notice notice-bad" role="alert">
                <Icon glyph=Glyph::Warning/>
                <p class="grow">{words.meanwhile.of(config.revision)}" "<a class="quiet-link" href=changes target="_blank">{words.what_changed_in.of(config.revision)}</a></p>
            </div>
        }
    });
    let mut files = typed_files(&typed);
    if files.is_empty() {
        files = bundle_files(bundle);
    }
    let errors = form_errors(problem.filter(|_| !is_outdated), &files);
    let address = config_url(&config.name);
    let action = if can_edit { format!("/ui{address}") } else { "/ui/configs".to_owned() };
    let name_or_revision = if can_edit {
        view! { <input type="hidden" name="revision" value=config.revision.to_string()/> }.into_erased()
    } else {
        let name = truncate_name(&format!("{}-{}", config.name, prefs.reader_name()));
        view! {
            <div class="notice"><Icon glyph=Glyph::Copy/><p class="grow">{words.copy_intro}</p></div>
            <section class="panel form">
                <Field id="name" label=words.name error=errors.message("name")>
                    <input class="input w-full" id="name" name="name" required=true maxlength=MAX_NAME_LENGTH.to_string() autocomplete="off"
                        spellcheck="false" aria-invalid=errors.aria_invalid("name") aria-describedby=errors.aria_describedby("name", None)
                        autofocus=errors.is_first("name") value=name/>
                </Field>
            </section>
        }
        .into_erased()
    };
    view! {
        {conflict_notice}
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action=action class="config-form" data-editor-words=editor_words()>
            {name_or_revision}
            <FileSections files=files errors=errors/>
            <FormActions back=address/>
        </form>
    }
    .into_erased()
}

/// The sentences of the editor, for its script.
fn editor_words() -> String {
    FindingWords::new(&t().server_pages().configs.check).embedded()
}

fn truncate_name(name: &str) -> String {
    name.chars().take(MAX_NAME_LENGTH).collect()
}

/// The files of a configuration, the main one first.
fn bundle_files(bundle: ConfigBundle) -> Vec<FormFile> {
    let mut files: Vec<FormFile> = bundle.files.into_iter().map(|(name, text)| FormFile::new(&name, &text)).collect();
    files.sort_by_key(|file| file.name != CONFIG_FILE);
    files
}

fn is_too_large(bundle: &ConfigBundle) -> bool {
    bundle.files.values().map(String::len).sum::<usize>() > MAX_TEXT_BYTES
}

fn too_large_panel() -> AnyView {
    view! {
        <div class="panel form">
            <p>{t().server_pages().configs.too_large}</p>
            <code class="font-mono text-sm">"simpletuner configs push DIRECTORY"</code>
        </div>
    }
    .into_erased()
}

/// The files as the user entered them, if the form was rejected.
fn typed_files(typed: &BTreeMap<String, String>) -> Vec<FormFile> {
    let file = |index: usize| {
        let field = |name: &str| typed.get(&format!("{name}.{index}")).cloned();
        Some(FormFile {
            name: field("file")?,
            text: field("text").unwrap_or_default(),
            is_removed: field("removed").is_some(),
        })
    };
    let mut files: Vec<FormFile> = (0..).map_while(file).collect();
    while files.last().is_some_and(|last| last.name.is_empty() && last.text.trim().is_empty()) {
        files.pop();
    }
    files
}

/// Assigns a problem to the name of the configuration, the name of a file, or the text of the main file.
fn form_errors(problem: Option<Problem>, files: &[FormFile]) -> FormErrors {
    let field = |(index, file): (usize, &FormFile)| {
        let control = if file.name == CONFIG_FILE { "text" } else { "file" };
        (format!("{control}.{index}"), file_field(&file.name))
    };
    let fields: Vec<(String, String)> = files.iter().enumerate().map(field).collect();
    let aliases: Vec<[&str; 1]> = fields.iter().map(|(_, name)| [name.as_str()]).collect();
    let files = fields.iter().zip(&aliases).map(|((id, _), names)| -> FieldAliases<'_> { (id, names) });
    let all: Vec<FieldAliases<'_>> =
        std::iter::once::<FieldAliases<'_>>(("name", &["invalid_name"])).chain(files).collect();
    FormErrors::from_problem(problem, &all)
}

#[component]
fn FormActions(back: String) -> impl IntoView {
    view! {
        <div class="form-actions">
            <button class="btn btn-primary"><Icon glyph=Glyph::Check/>{t().server_pages().configs.save}</button>
            <a class="btn btn-ghost" href=back>{t().common.cancel}</a>
        </div>
    }
    .into_erased()
}
