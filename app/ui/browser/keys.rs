//! Keys, and what they do to the page that is open.

use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent, Node};

use crate::ui::shortcuts::Stroke;

/// What takes keys as text.
const TEXT: &str =
    "input:not([type=checkbox],[type=radio],[type=button],[type=submit]),textarea,select,[contenteditable]";
/// A row's link, by which it is gone to.
const ROWS: &str = "main .row-link";

/// A key as it was pressed.
pub(crate) fn stroke<'k>(event: &KeyboardEvent, key: &'k str) -> Stroke<'k> {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let command = event.ctrl_key() || event.meta_key();
    Stroke {
        key,
        command,
        other: event.alt_key() || event.is_composing() || (command && event.shift_key()),
        typing: target.is_some_and(|target| target.matches(TEXT).unwrap_or(false)),
        dialog: first("dialog[open]").is_some(),
        held: event.repeat(),
    }
}

/// Whether somebody points at something in there, or stands in it.
pub(crate) fn attends(selector: &str) -> bool {
    first(&format!("{selector}:hover, {selector}:focus-within")).is_some()
}

/// Follows a link, wherever the page shows it.
pub(crate) fn click(selector: &str) {
    if let Some(element) = first(selector) {
        element.click();
    }
}

/// Goes to the first of these that is to be seen.
pub(crate) fn focus(selectors: &[&str]) {
    if let Some(element) = selectors.iter().find_map(|selector| shown(selector).into_iter().next()) {
        go_to(&element);
    }
}

/// Presses the first of these that is to be seen; goes to it only, where pressing it would change something.
pub(crate) fn press(selector: &str) {
    if let Some(element) = shown(selector).into_iter().next() {
        go_to(&element);
        if element.tag_name() != "BUTTON" {
            element.click();
        }
    }
}

/// Goes to the next row, or to the one before.
pub(crate) fn step(forward: bool) {
    let rows = shown(ROWS);
    let now = row().and_then(|row| rows.iter().position(|link| row.contains(Some(link))));
    let next = match (now, forward) {
        (None, _) => 0,
        (Some(now), true) => (now + 1).min(rows.len().saturating_sub(1)),
        (Some(now), false) => now.saturating_sub(1),
    };
    if let Some(link) = rows.get(next) {
        go_to(link);
    }
}

/// Presses something in the row that is gone to.
pub(crate) fn in_row(selector: &str) {
    let found = row().and_then(|row| row.query_selector(selector).ok().flatten());
    if let Some(element) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        element.click();
    }
}

/// Takes an option of a list, or opens it in a tab of its own.
pub(crate) fn open_option(id: &str, apart: bool) {
    let Some(option) = first(&format!("#{id}")) else { return };
    match option.get_attribute("href").filter(|_| apart) {
        // A browser that opens no tab has said so.
        Some(href) => drop(window().open_with_url_and_target(&href, "_blank")),
        None => option.click(),
    }
}

/// Has an option of a list be seen.
pub(crate) fn reveal(id: &str) {
    if let Some(option) = first(&format!("#{id}")) {
        option.scroll_into_view_with_bool(false);
    }
}

/// Goes back to what opened the disclosure in which a key was pressed.
pub(crate) fn focus_summary(event: &KeyboardEvent) {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let details = target.and_then(|target| target.closest("details").ok().flatten());
    let summary = details.and_then(|details| details.query_selector("summary").ok().flatten());
    if let Some(summary) = summary.and_then(|summary| summary.dyn_into::<HtmlElement>().ok()) {
        go_to(&summary);
    }
}

/// The row in which the reader is.
fn row() -> Option<Element> {
    document().active_element()?.closest("main tr, main li").ok().flatten()
}

fn first(selector: &str) -> Option<HtmlElement> {
    document().query_selector(selector).ok().flatten()?.dyn_into().ok()
}

/// All of these that are to be seen.
fn shown(selector: &str) -> Vec<HtmlElement> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    let element = |index| found.get(index).and_then(|node: Node| node.dyn_into::<HtmlElement>().ok());
    (0..found.length()).filter_map(element).filter(|element| element.get_client_rects().length() > 0).collect()
}

fn go_to(element: &HtmlElement) {
    // What cannot be gone to is not there any more.
    let _gone = element.focus();
}
