//! The editor of a configuration, in the form that the server rendered: checks the text while it is typed, numbers its
//! lines, and keeps the fields for the usual keys and the text the same.
//!
//! Its code is a part of its own, which only this page fetches.

use std::rc::Rc;

use leptos::lazy;
use leptos::mount::mount_to_renderer;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, Event, EventTarget, HtmlDocument, HtmlInputElement, HtmlTextAreaElement, KeyboardEvent};

use super::browser::elements;
use crate::domain::config_check::edit::{FieldValue, field_value, line_break, set_value};
use crate::domain::config_check::keys::KnownKey;
use crate::domain::config_check::utf16_position;
use crate::ui::configs::findings::{FindingList, FindingWords, Findings, line_numbers};
use crate::ui::erase::Erase;

/// The form of the editor, with its sentences.
const FORM: &str = "form[data-editor-words]";

/// Fetches the editor's code, if the page has a form for it.
pub(crate) fn attach_if_present() {
    if document().query_selector(FORM).is_ok_and(|form| form.is_some()) {
        spawn_local(attach());
    }
}

#[lazy]
async fn attach() {
    let Ok(Some(form)) = document().query_selector(FORM) else { return };
    let Some(words) = form.get_attribute("data-editor-words").and_then(|text| FindingWords::parse(&text)) else {
        return;
    };
    let words = Rc::new(words);
    for section in elements(form.query_selector_all("[data-editor]")) {
        if let Some(editor) = Editor::find(section, Rc::clone(&words)) {
            Rc::new(editor).attach();
        }
    }
}

/// The elements of one file.
struct Editor {
    section: Element,
    file_name: HtmlInputElement,
    text: HtmlTextAreaElement,
    lines: Element,
    findings: ArcRwSignal<FindingList>,
    /// The fields for the usual keys; none but for the main file.
    fields: Vec<HtmlInputElement>,
    words: Rc<FindingWords>,
}

impl Editor {
    fn find(section: Element, words: Rc<FindingWords>) -> Option<Self> {
        let first = |selector: &str| section.query_selector(selector).ok().flatten();
        let fields = elements(section.query_selector_all("[data-key]"));
        Some(Self {
            file_name: first("[name^='file.']")?.dyn_into().ok()?,
            text: first("textarea")?.dyn_into().ok()?,
            lines: first(".editor-lines")?,
            findings: mount_findings(&first(".findings")?),
            fields: fields.into_iter().filter_map(|field| field.dyn_into().ok()).collect(),
            section,
            words,
        })
    }

    fn attach(self: Rc<Self>) {
        if let Ok(Some(usual_keys)) = self.section.query_selector("fieldset[disabled]") {
            let _enabled = usual_keys.remove_attribute("disabled");
        }
        // The text as the browser kept it when the user came back to the page.
        self.refresh();
        let editor = Rc::clone(&self);
        listen(&self.section, "input", move |event| {
            let is_field = event.target().is_some_and(|target| editor.field(&target).is_some());
            if !is_field {
                editor.refresh();
            }
        });
        let editor = Rc::clone(&self);
        listen(&self.section, "change", move |event| {
            if let Some(field) = event.target().as_ref().and_then(|target| editor.field(target)) {
                editor.apply_field(field);
            }
        });
        let editor = Rc::clone(&self);
        listen(&self.section, "click", move |event| {
            let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            if let Some(range) = target.and_then(|target| target.get_attribute("data-select")) {
                editor.select(&range);
            }
        });
        let editor = Rc::clone(&self);
        listen(&self.text, "keydown", move |event| {
            if let Some(key) = event.dyn_ref::<KeyboardEvent>() {
                editor.break_line(key);
            }
        });
        let editor = Rc::clone(&self);
        listen(&self.text, "scroll", move |_| editor.lines.set_scroll_top(editor.text.scroll_top()));
    }

    fn field(&self, target: &EventTarget) -> Option<&HtmlInputElement> {
        self.fields.iter().find(|field| field.is_same_node(target.dyn_ref()))
    }

    /// Shows what follows from the text.
    fn refresh(&self) {
        let text = self.text.value();
        let numbers = line_numbers(&text);
        if self.lines.text_content().as_ref() != Some(&numbers) {
            self.lines.set_text_content(Some(&numbers));
            self.lines.set_scroll_top(self.text.scroll_top());
        }
        let findings = FindingList::new(&self.file_name.value(), &text, &self.words);
        let is_invalid = findings.has_errors();
        // The same findings are not announced again.
        if self.findings.get_untracked() != findings {
            self.findings.set(findings);
        }
        let _marked = self.text.set_attribute("aria-invalid", if is_invalid { "true" } else { "false" });
        let focused = document().active_element();
        for field in &self.fields {
            let Some(name) = field.get_attribute("data-key") else { continue };
            let (value, is_fixed) = match field_value(&text, &name) {
                FieldValue::Text(value) => (value, false),
                FieldValue::Fixed => (String::new(), true),
            };
            field.set_disabled(is_fixed);
            let has_focus = focused.as_ref().is_some_and(|focused| focused.is_same_node(Some(field)));
            if !has_focus && field.value() != value {
                field.set_value(&value);
            }
        }
    }

    /// Writes the value of a field into the text.
    fn apply_field(&self, field: &HtmlInputElement) {
        let text = self.text.value();
        let known = field.get_attribute("data-key").and_then(|name| KnownKey::find(&name));
        if let Some(edit) = known.and_then(|known| set_value(&text, known, &field.value())) {
            let (start, end) = (browser_position(&text, edit.span.start), browser_position(&text, edit.span.end));
            let _replaced = self.text.set_range_text_with_start_and_end(&edit.text, start, end);
            self.refresh();
        }
    }

    /// Selects a place of a finding, and scrolls to it.
    fn select(&self, range: &str) {
        let Some((start, end)) = range.split_once('-') else { return };
        let (Ok(start), Ok(end)) = (start.parse(), end.parse()) else { return };
        let _focused = self.text.focus();
        let _selected = self.text.set_selection_range(start, end);
        // Browsers scroll to a selection only if it is typed in.
        let text: Vec<u16> = self.text.value().encode_utf16().take(start as usize).collect();
        let line = text.iter().filter(|unit| **unit == u16::from(b'\n')).count();
        let lines = self.text.value().matches('\n').count() + 1;
        let middle = i32::try_from(line).unwrap_or_default() * self.text.scroll_height()
            / i32::try_from(lines).unwrap_or(1).max(1)
            - self.text.client_height() / 2;
        self.text.set_scroll_top(middle.max(0));
    }

    /// Keeps the indentation when the user presses Enter.
    fn break_line(&self, key: &KeyboardEvent) {
        let is_plain = !(key.shift_key() || key.ctrl_key() || key.alt_key() || key.meta_key() || key.is_composing());
        if key.key() != "Enter" || !is_plain {
            return;
        }
        let Ok(Some(start)) = self.text.selection_start() else { return };
        let before: Vec<u16> = self.text.value().encode_utf16().take(start as usize).collect();
        let added = line_break(&String::from_utf16_lossy(&before));
        // The only way by which the user can undo it; it is an input like any other.
        let document = document().dyn_into::<HtmlDocument>();
        let is_inserted = document.is_ok_and(|document| {
            document.exec_command_with_show_ui_and_value("insertText", false, &added).unwrap_or_default()
        });
        if is_inserted {
            key.prevent_default();
        }
    }
}

/// Shows the findings in place of those that the server rendered.
fn mount_findings(element: &Element) -> ArcRwSignal<FindingList> {
    let findings = ArcRwSignal::new(FindingList::default());
    let shown = findings.clone();
    element.set_text_content(None);
    mount_to_renderer(element, move || {
        let shown = shown.clone();
        (move || view! { <Findings list=shown.get()/> }).into_erased()
    })
    .forget();
    findings
}

fn browser_position(text: &str, byte: usize) -> u32 {
    u32::try_from(utf16_position(text, byte)).unwrap_or(u32::MAX)
}

/// Listens for as long as the page is open.
fn listen(target: &EventTarget, event: &str, handler: impl Fn(Event) + 'static) {
    let handler = Closure::<dyn Fn(Event)>::new(handler);
    let _listens = target.add_event_listener_with_callback(event, handler.as_ref().unchecked_ref());
    handler.forget();
}
