//! The files in the form of a configuration, each with its editor.

use leptos::prelude::*;

use crate::domain::config_check::edit::{FieldValue, field_value};
use crate::domain::config_check::keys::{KNOWN_KEYS, KeyKind};
use crate::domain::config_files::CONFIG_FILE;
use crate::ui::configs::findings::{FindingList, FindingWords, Findings, line_numbers};
use crate::ui::erase::Erase;
use crate::ui::form_errors::{FormErrors, error_id};
use crate::ui::format::escape_html;
use crate::ui::i18n::t;

/// Number of files that can be added at once.
const EXTRA_FILES: usize = 2;
/// The maximum size of text to edit here, in bytes: as form data, it is up to three times as large.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;

/// A file in the form.
#[derive(Default)]
pub(super) struct FormFile {
    pub name: String,
    pub text: String,
    pub is_removed: bool,
}

impl FormFile {
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_removed: false }
    }
}

/// The files, and empty sections to add more.
#[component]
pub(super) fn FileSections(files: Vec<FormFile>, errors: FormErrors) -> impl IntoView {
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
    let (is_main, is_removed) = (file.name == CONFIG_FILE, file.is_removed);
    let name = if is_main {
        view! { <input type="hidden" name=id("file") value=CONFIG_FILE/> }.into_erased()
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
    let text_label = if is_new { words.another_file.to_owned() } else { file.name.clone() };
    view! {
        <section class="panel form" aria-labelledby=id("head") data-editor="">
            <h2 id=id("head") class=if is_new { "panel-title" } else { "panel-title font-mono wrap-anywhere" }>{text_label.clone()}</h2>
            {name}
            {is_main.then(|| view! { <UsualKeys text=file.text.clone()/> })}
            <div class="field">
                <label for=id("text")>{words.file_text}<span class="sr-only">": "{text_label}</span></label>
                {is_main.then(|| view! { <p class="field-hint js-only" id=id("text-hint")>{words.text_hint}</p> })}
                <TextEditor index=index file_name=file.name text=file.text errors=errors/>
                {error_message("text")}
            </div>
            {is_main.then(|| view! { <KnownKeys/> })}
            {remove_field}
        </section>
    }
    .into_erased()
}

/// The text area with the numbers of its lines, and what the check found. Lines do not wrap, so that each has its number.
#[component]
fn TextEditor(index: usize, file_name: String, text: String, errors: FormErrors) -> impl IntoView {
    let id = |control: &str| format!("{control}.{index}");
    let rows = text.lines().count().clamp(3, 30) + 1;
    let numbers = line_numbers(&text);
    let findings = FindingList::new(&file_name, &text, &FindingWords::new(&t().server_pages().configs.check));
    let described_by = errors.aria_describedby(&id("text"), Some(&id("findings")));
    // An HTML parser drops a line break at the start of a text area.
    let text = format!("\n{text}");
    view! {
        <div class="editor">
            <textarea class="textarea w-full font-mono" id=id("text") name=id("text") rows=rows.to_string() maxlength=MAX_TEXT_BYTES.to_string()
                wrap="off" spellcheck="false" autocapitalize="none" autocomplete="off" dir="ltr" aria-invalid=errors.aria_invalid(&id("text"))
                aria-describedby=described_by autofocus=errors.is_first(&id("text"))>{escape_html(&text)}</textarea>
            <pre class="editor-lines" aria-hidden="true">{numbers}</pre>
        </div>
        <div class="findings" id=id("findings") aria-live="polite"><Findings list=findings/></div>
    }
    .into_erased()
}

/// Fields for the usual keys, which a script keeps the same as the text. Without one they are not shown: two places for
/// one value would leave open which of them is saved.
#[component]
fn UsualKeys(text: String) -> impl IntoView {
    let words = &t().server_pages().configs;
    let fields = KNOWN_KEYS.iter().filter(|known| known.is_usual).map(|known| {
        let (id, hint_id) = (format!("key-{}", known.name), format!("key-{}-hint", known.name));
        let described_by = hint_id.clone();
        let (value, is_fixed) = match field_value(&text, known.name) {
            FieldValue::Text(value) => (value, false),
            FieldValue::Fixed => (String::new(), true),
        };
        let input_mode = match known.kind {
            KeyKind::Whole => "numeric",
            KeyKind::Number => "decimal",
            KeyKind::Text | KeyKind::Webhooks => "text",
        };
        view! {
            <div class="field">
                <label for=id.clone() class="font-mono">{known.name}</label>
                <input class="input input-sm w-full font-mono" id=id inputmode=input_mode autocomplete="off" autocapitalize="none" spellcheck="false"
                    data-key=known.name disabled=is_fixed aria-describedby=described_by value=value/>
                <p class="field-hint" id=hint_id>{words.keys.of(known.name)}</p>
            </div>
        }
    });
    view! {
        <fieldset class="usual-keys" disabled=true>
            <legend>{words.usual}</legend>
            <p class="field-hint">{words.usual_hint}</p>
            <div class="usual-keys-grid">{fields.collect_view()}</div>
        </fieldset>
    }
    .into_erased()
}

/// The keys that the check knows.
#[component]
fn KnownKeys() -> impl IntoView {
    let words = &t().server_pages().configs;
    let rows = KNOWN_KEYS.iter().map(|known| {
        let kind = match known.kind {
            KeyKind::Text => words.kind_text,
            KeyKind::Whole => words.kind_whole,
            KeyKind::Number => words.kind_number,
            KeyKind::Webhooks => words.kind_webhooks,
        };
        view! {
            <tr>
                <th scope="row"><span class="font-mono wrap-anywhere">{known.name}</span><span class="row-sub">{kind}</span></th>
                <td>{words.keys.of(known.name)}</td>
            </tr>
        }
    });
    view! {
        <details class="fold">
            <summary>{words.known}</summary>
            <p class="field-hint">{words.known_hint}</p>
            <table class="data">
                <caption class="sr-only">{words.known}</caption>
                <thead><tr><th scope="col">{words.setting}</th><th scope="col">{words.meaning}</th></tr></thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </details>
    }
    .into_erased()
}
