//! Keys, and what they do to the page that is open.

use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent, MouseEvent, Node};

use crate::ui::shortcuts::KeyPress;

/// What takes keys as text.
const TEXT_INPUTS: &str =
    "input:not([type=checkbox],[type=radio],[type=button],[type=submit]),textarea,select,[contenteditable]";
/// What lies over the page while it is open.
const POPOVERS: &str = "details[open]:is(.confirm, .row-menu, .top-menu)";
/// A row's link, by which it is gone to.
const ROW_LINKS: &str = "main .row-link";

/// A key as it was pressed.
pub(crate) fn key_press<'k>(event: &KeyboardEvent, key: &'k str) -> KeyPress<'k> {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let command = event.ctrl_key() || event.meta_key();
    KeyPress {
        key,
        command,
        other_modifier: event.alt_key() || event.is_composing() || (command && event.shift_key()),
        in_text_field: target.is_some_and(|target| target.matches(TEXT_INPUTS).unwrap_or(false)),
        dialog_open: query_first("dialog[open]").is_some(),
        is_repeat: event.repeat(),
    }
}

/// Whether somebody points at something in there, or stands in it.
pub(crate) fn is_hovered_or_focused(selector: &str) -> bool {
    query_first(&format!("{selector}:hover, {selector}:focus-within")).is_some()
}

/// Follows a link, wherever the page shows it.
pub(crate) fn click(selector: &str) {
    if let Some(element) = query_first(selector) {
        element.click();
    }
}

/// Goes to the first of these that is to be seen.
pub(crate) fn focus_first(selectors: &[&str]) {
    if let Some(element) = selectors.iter().find_map(|selector| query_visible(selector).into_iter().next()) {
        focus_element(&element);
    }
}

/// Presses the first of these that is to be seen; goes to it only, where pressing it would change something.
pub(crate) fn activate_first(selector: &str) {
    if let Some(element) = query_visible(selector).into_iter().next() {
        focus_element(&element);
        if element.tag_name() != "BUTTON" {
            element.click();
        }
    }
}

/// Goes to the next row, or to the one before.
pub(crate) fn move_row_focus(forward: bool) {
    let rows = query_visible(ROW_LINKS);
    let now = current_row().and_then(|row| rows.iter().position(|link| row.contains(Some(link))));
    let next = match (now, forward) {
        (None, _) => 0,
        (Some(now), true) => (now + 1).min(rows.len().saturating_sub(1)),
        (Some(now), false) => now.saturating_sub(1),
    };
    if let Some(link) = rows.get(next) {
        focus_element(link);
    }
}

/// Presses something in the row that is gone to.
pub(crate) fn click_in_row(selector: &str) {
    let found = current_row().and_then(|row| row.query_selector(selector).ok().flatten());
    if let Some(element) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        element.click();
    }
}

/// Takes an option of a list, or opens it in a tab of its own.
pub(crate) fn open_option(id: &str, apart: bool) {
    let Some(option) = query_first(&format!("#{id}")) else { return };
    match option.get_attribute("href").filter(|_| apart) {
        // A browser that opens no tab has said so.
        Some(href) => drop(window().open_with_url_and_target(&href, "_blank")),
        None => option.click(),
    }
}

/// Has an option of a list be seen.
pub(crate) fn scroll_to_option(id: &str) {
    if let Some(option) = query_first(&format!("#{id}")) {
        option.scroll_into_view_with_bool(false);
    }
}

/// Goes back to what opened the disclosure in which a key was pressed.
pub(crate) fn focus_summary(event: &KeyboardEvent) {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let details = target.and_then(|target| target.closest("details").ok().flatten());
    let summary = details.and_then(|details| details.query_selector("summary").ok().flatten());
    if let Some(summary) = summary.and_then(|summary| summary.dyn_into::<HtmlElement>().ok()) {
        focus_element(&summary);
    }
}

/// Closes the popovers that a click was outside of.
pub(crate) fn close_popovers(click: &MouseEvent) {
    let target = click.target().and_then(|target| target.dyn_into::<Node>().ok());
    for popover in query_visible(POPOVERS).iter().filter(|popover| !popover.contains(target.as_ref())) {
        let _closed = popover.remove_attribute("open");
    }
}

/// The row in which the reader is.
fn current_row() -> Option<Element> {
    document().active_element()?.closest("main tr, main li").ok().flatten()
}

fn query_first(selector: &str) -> Option<HtmlElement> {
    document().query_selector(selector).ok().flatten()?.dyn_into().ok()
}

/// All of these that are to be seen.
fn query_visible(selector: &str) -> Vec<HtmlElement> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    let element = |index| found.get(index).and_then(|node: Node| node.dyn_into::<HtmlElement>().ok());
    (0..found.length()).filter_map(element).filter(|element| element.get_client_rects().length() > 0).collect()
}

fn focus_element(element: &HtmlElement) {
    // What cannot be gone to is not there any more.
    let _gone = element.focus();
}
