//! Keyboard input, and what it does in the open page.

use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, KeyboardEvent, MouseEvent, Node};

use crate::ui::shortcuts::KeyPress;

/// Elements that take keys as text.
const TEXT_INPUTS: &str =
    "input:not([type=checkbox],[type=radio],[type=button],[type=submit]),textarea,select,[contenteditable]";
/// Elements that cover the page while they are open.
const POPOVERS: &str = "details[open]:is(.confirm, .row-menu, .top-menu, .account-menu)";
/// The link of a row, which receives the focus for the row.
const ROW_LINKS: &str = "main .row-link";

/// Describes a key press and where it happened.
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

/// Whether the pointer or the focus is in an element that the selector matches.
pub(crate) fn is_hovered_or_focused(selector: &str) -> bool {
    query_first(&format!("{selector}:hover, {selector}:focus-within")).is_some()
}

/// Opens a page. A click on its link uses the router, or loads the page if it is server-rendered.
pub(crate) fn go_to(href: &str) {
    if let Some(link) = query_first(&format!(".sidebar a[href='{href}']")) {
        return link.click();
    }
    // A page without a link in the side bar: the router also handles a click on a new one.
    let Some(link) = document().create_element("a").ok().and_then(|link| link.dyn_into::<HtmlElement>().ok()) else {
        return;
    };
    let is_added = link.set_attribute("href", href).is_ok()
        && document().body().is_some_and(|body| body.append_child(&link).is_ok());
    if is_added {
        link.click();
        link.remove();
    }
}

/// Focuses the first visible element of the first selector that has one.
pub(crate) fn focus_first(selectors: &[&str]) {
    if let Some(element) = selectors.iter().find_map(|selector| query_visible(selector).into_iter().next()) {
        focus_element(&element);
    }
}

/// Focuses the first visible element, and clicks it unless it is a button, which could change something.
pub(crate) fn activate_first(selector: &str) {
    if let Some(element) = query_visible(selector).into_iter().next() {
        focus_element(&element);
        if element.tag_name() != "BUTTON" {
            element.click();
        }
    }
}

/// Moves the focus to the next or previous row.
pub(crate) fn move_row_focus(forward: bool) {
    let rows = query_visible(ROW_LINKS);
    let current = current_row().and_then(|row| rows.iter().position(|link| row.contains(Some(link))));
    let next = match (current, forward) {
        (None, _) => 0,
        (Some(current), true) => (current + 1).min(rows.len().saturating_sub(1)),
        (Some(current), false) => current.saturating_sub(1),
    };
    if let Some(link) = rows.get(next) {
        focus_element(link);
    }
}

/// Clicks an element in the row that has the focus.
pub(crate) fn click_in_row(selector: &str) {
    let found = current_row().and_then(|row| row.query_selector(selector).ok().flatten());
    if let Some(element) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        element.click();
    }
}

/// Selects an option of a list, or opens its link in a new tab.
pub(crate) fn open_option(id: &str, in_new_tab: bool) {
    let Some(option) = query_first(&format!("#{id}")) else { return };
    match option.get_attribute("href").filter(|_| in_new_tab) {
        // If the browser blocks the tab, it informs the user itself.
        Some(href) => drop(window().open_with_url_and_target(&href, "_blank")),
        None => option.click(),
    }
}

/// Scrolls an option of a list into view.
pub(crate) fn scroll_to_option(id: &str) {
    if let Some(option) = query_first(&format!("#{id}")) {
        option.scroll_into_view_with_bool(false);
    }
}

/// Focuses the summary of the `details` element in which a key was pressed.
pub(crate) fn focus_summary(event: &KeyboardEvent) {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let details = target.and_then(|target| target.closest("details").ok().flatten());
    let summary = details.and_then(|details| details.query_selector("summary").ok().flatten());
    if let Some(summary) = summary.and_then(|summary| summary.dyn_into::<HtmlElement>().ok()) {
        focus_element(&summary);
    }
}

/// Closes all popovers that do not contain the click.
pub(crate) fn close_popovers(click: &MouseEvent) {
    let target = click.target().and_then(|target| target.dyn_into::<Node>().ok());
    for popover in query_visible(POPOVERS).iter().filter(|popover| !popover.contains(target.as_ref())) {
        let _closed = popover.remove_attribute("open");
    }
}

/// Closes the popover that contains the click.
pub(crate) fn close_enclosing_popover(click: &MouseEvent) {
    let target = click.target().and_then(|target| target.dyn_into::<Element>().ok());
    if let Some(popover) = target.and_then(|target| target.closest(POPOVERS).ok().flatten()) {
        let _closed = popover.remove_attribute("open");
    }
}

/// The row that contains the focus.
fn current_row() -> Option<Element> {
    document().active_element()?.closest("main tr, main li").ok().flatten()
}

fn query_first(selector: &str) -> Option<HtmlElement> {
    document().query_selector(selector).ok().flatten()?.dyn_into().ok()
}

/// All visible elements that the selector matches.
fn query_visible(selector: &str) -> Vec<HtmlElement> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    let element = |index| found.get(index).and_then(|node: Node| node.dyn_into::<HtmlElement>().ok());
    (0..found.length()).filter_map(element).filter(|element| element.get_client_rects().length() > 0).collect()
}

fn focus_element(element: &HtmlElement) {
    // An element that cannot be focused has been removed.
    let _focused = element.focus();
}
