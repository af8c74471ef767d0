//! The form for a new configuration, or for a new revision of an existing one.

use std::collections::BTreeMap;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::protocol::configs::{ConfigDetail, file_field};
use crate::protocol::percent_encoding;
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors, error_id};
use crate::ui::format::{config_url, escape_html};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

/// The file that every configuration has.
const MAIN_FILE: &str = "config.json";
/// The initial text of a new configuration.
const NEW_FILE_TEXT: &str = "{\n}\n";
/// The maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 64;
/// Number of files that can be added at once.
const EXTRA_FILES: usize = 2;
/// The maximum size of text to edit here, in bytes: as form data, it is up to three times as large.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The page that creates a configuration.
#[component]
pub(crate) fn ConfigNewPage() -> impl IntoView {
    let words = &t().server_pages().configs;
    let page_backend = use_page_backend();
    let (problem, typed) = form_problem(FormName::Config);
    let permission_check = Resource::new(|| (), move |()| page_backend.editable_config(None));
    let shown = move || {
        let (problem, typed) = (problem.clone(), typed.clone());
        Suspend::new(async move {
            match permission_check.await {
                Ok(_) => view! { <NewConfigForm problem=problem typed=typed/> }.into_erased(),
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
fn NewConfigForm(problem: Option<Problem>, typed: BTreeMap<String, String>) -> impl IntoView {
    let words = &t().server_pages().configs;
    let name = typed.get("name").cloned().unwrap_or_default();
    let is_taken = problem.as_ref().is_some_and(|problem| problem.code == "precondition_failed");
    let taken_error = is_taken.then(|| {
        let existing_config_url = format!("{}/edit", config_url(&name));
        view! {
            <p class="field-error" id="name-error" role="alert">{words.taken}" "<a class="quiet-link" href=existing_config_url>{name.clone()}</a></p>
        }
    });
    let mut files = typed_files(&typed);
    if files.is_empty() {
        files.push(FormFile::new(MAIN_FILE, NEW_FILE_TEXT));
    }
    let errors = form_errors(problem.filter(|_| !is_taken), &files);
    let is_invalid = is_taken || errors.has_any(&["name"]);
    view! {
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action="/ui/configs" class="config-form">
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
    if bundle.files.values().map(String::len).sum::<usize>() > MAX_TEXT_BYTES {
        return view! {
            <div class="panel form">
                <p>{words.too_large}</p>
                <code class="font-mono text-sm">"simpletuner configs push DIRECTORY"</code>
            </div>
        }
        .into_erased();
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
        files.extend(bundle.files.into_iter().map(|(name, text)| FormFile::new(&name, &text)));
        files.sort_by_key(|file| file.name != MAIN_FILE);
    }
    let errors = form_errors(problem.filter(|_| !is_outdated), &files);
    let address = config_url(&config.name);
    let action = if can_edit { format!("/ui{address}") } else { "/ui/configs".to_owned() };
    let name_or_revision = if can_edit {
        view! { <input type="hidden" name="revision" value=config.revision.to_string()/> }.into_erased()
    } else {
        let name: String = format!("{}-{}", config.name, prefs.reader_name()).chars().take(MAX_NAME_LENGTH).collect();
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
        <form method="post" action=action class="config-form">
            {name_or_revision}
            <FileSections files=files errors=errors/>
            <FormActions back=address/>
        </form>
    }
    .into_erased()
}

/// A file in the form.
#[derive(Default)]
struct FormFile {
    name: String,
    text: String,
    is_removed: bool,
}

impl FormFile {
    fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_removed: false }
    }
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
        let control = if file.name == MAIN_FILE { "text" } else { "file" };
        (format!("{control}.{index}"), file_field(&file.name))
    };
    let fields: Vec<(String, String)> = files.iter().enumerate().map(field).collect();
    let aliases: Vec<[&str; 1]> = fields.iter().map(|(_, name)| [name.as_str()]).collect();
    let files = fields.iter().zip(&aliases).map(|((id, _), names)| -> FieldAliases<'_> { (id, names) });
    let all: Vec<FieldAliases<'_>> =
        std::iter::once::<FieldAliases<'_>>(("name", &["invalid_name"])).chain(files).collect();
    FormErrors::from_problem(problem, &all)
}

/// The files, and empty sections to add more.
#[component]
fn FileSections(files: Vec<FormFile>, errors: FormErrors) -> impl IntoView {
    let existing_count = files.len();
    let all = files.into_iter().chain(std::iter::repeat_with(FormFile::default).take(EXTRA_FILES)).enumerate();
    let sections = all.map(|(index, file)| {
        view! { <FileSection index=index file=file is_new={index >= existing_count} errors=errors/> }
    });
    sections.collect_view().into_erased()
}

#[component]
fn FileSection(index: usize, file: FormFile, is_new: bool, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().configs;
    let id = |control: &str| format!("{control}.{index}");
    let error_message = |control: &str| {
        let field_id = id(control);
        errors
            .message(&field_id)
            .map(|error| view! { <p class="field-error" id=error_id(&field_id) role="alert">{error}</p> })
    };
    let (is_main, is_removed) = (file.name == MAIN_FILE, file.is_removed);
    let name = if is_main {
        view! { <input type="hidden" name=id("file") value=MAIN_FILE/> }.into_erased()
    } else {
        let hint = is_new.then(|| id("hint"));
        view! {
            <div class="field">
                <label for=id("file")>{words.file_name}</label>
                {is_new.then(|| view! { <p class="field-hint" id=id("hint")>{words.file_name_hint}</p> })}
                <input class="input w-full font-mono" id=id("file") name=id("file") maxlength="512" autocomplete="off" spellcheck="false"
                    aria-describedby=errors.aria_describedby(&id("file"), hint.as_deref()) aria-invalid=errors.aria_invalid(&id("file"))
                    autofocus=errors.is_first(&id("file")) value=file.name.clone()/>
                {error_message("file")}
            </div>
        }
        .into_erased()
    };
    let remove_field = (!is_main && !is_new).then(|| {
        view! {
            <span class="tick">
                <input type="checkbox" class="checkbox checkbox-sm" id=id("removed") name=id("removed") value="true" checked=is_removed/>
                <label for=id("removed")>{words.remove_file}</label>
            </span>
        }
    });
    let lines = file.text.lines().count().clamp(3, 30) + 1;
    // An HTML parser drops a line break at the start of a text area.
    let text = format!("\n{}", file.text);
    let title = if is_new { words.another_file.to_owned() } else { file.name };
    view! {
        <section class="panel form" aria-labelledby=id("head")>
            <h2 id=id("head") class=if is_new { "panel-title" } else { "panel-title font-mono wrap-anywhere" }>{title.clone()}</h2>
            {name}
            <div class="field">
                <label for=id("text")>{words.file_text}<span class="sr-only">": "{title}</span></label>
                <textarea class="textarea w-full font-mono" id=id("text") name=id("text") rows=lines.to_string() maxlength=MAX_TEXT_BYTES.to_string()
                    spellcheck="false" autocapitalize="none" dir="ltr" aria-invalid=errors.aria_invalid(&id("text"))
                    aria-describedby=errors.aria_describedby(&id("text"), None) autofocus=errors.is_first(&id("text"))>{escape_html(&text)}</textarea>
                {error_message("text")}
            </div>
            {remove_field}
        </section>
    }
    .into_erased()
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
