//! Interactions of server-rendered pages: live previews of forms, copy buttons, and notices that can be dismissed.
//!
//! The server renders a page for any values of its form (`GET`), so the browser requests that page and replaces the
//! marked fragments (`data-part`). The address of the page follows, as if the form had been submitted. Nothing here is
//! specific to one page.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, Event, FormData, HtmlFormElement, UrlSearchParams};

use super::dom::copy_to_clipboard;
use super::fragments::{elements, fetch_page, replace_fragments};
use crate::ui::i18n::t;

/// The pause in typing before the preview is requested.
const TYPING_DEBOUNCE: Duration = Duration::from_millis(250);

/// How long a copy button shows that the text was copied.
const COPIED_NOTICE: Duration = Duration::from_secs(2);

/// Attaches the interactions for as long as the page is open.
pub(crate) fn attach_interactions() {
    let newest = Rc::new(Cell::new(0_u32));
    let waiting: Rc<Cell<Option<TimeoutHandle>>> = Rc::default();
    listen("input", move |target| {
        let form = target.closest("form[data-live]").ok().flatten();
        let Some(form) = form.and_then(|form| form.dyn_into::<HtmlFormElement>().ok()) else { return };
        let newest = Rc::clone(&newest);
        let number = newest.get().wrapping_add(1);
        newest.set(number);
        if let Some(earlier) = waiting.take() {
            earlier.clear();
        }
        let refresh = move || spawn_local(async move { refresh_form_preview(&form, || newest.get() == number).await });
        waiting.set(set_timeout_with_handle(refresh, TYPING_DEBOUNCE).ok());
    });
    listen("click", |target| {
        // Mounted components handle their own events.
        let is_unmounted = |element: &Element| element.closest("[data-mount]").is_ok_and(|mount| mount.is_none());
        let enclosing = |selector| target.closest(selector).ok().flatten().filter(is_unmounted);
        if let Some(button) = enclosing(".copy-button") {
            copy_preceding_text(&button);
        } else if let Some(notice) =
            enclosing(".notice .icon-button").and_then(|button| button.closest(".notice").ok()?)
        {
            notice.remove();
        }
    });
}

/// Copies the text before a button, and briefly confirms it.
fn copy_preceding_text(button: &Element) {
    let text = button.previous_element_sibling().and_then(|text| text.text_content());
    if !text.is_some_and(|text| copy_to_clipboard(&text)) {
        return;
    }
    let Ok(Some(status)) = button.query_selector("[aria-live]") else { return };
    let before = status.text_content();
    status.set_text_content(Some(t().common.copied));
    let _shown = button.class_list().add_1("is-copied");
    let button = button.clone();
    let reset = move || {
        status.set_text_content(before.as_deref());
        let _removed = button.class_list().remove_1("is-copied");
    };
    let _planned = set_timeout_with_handle(reset, COPIED_NOTICE);
}

fn listen(event: &str, handler: impl Fn(Element) + 'static) {
    let handler = Closure::<dyn Fn(Event)>::new(move |event: Event| {
        if let Some(target) = event.target().and_then(|target| target.dyn_into::<Element>().ok()) {
            handler(target);
        }
    });
    let _listens = document().add_event_listener_with_callback(event, handler.as_ref().unchecked_ref());
    // It listens for as long as the page is open.
    handler.forget();
}

/// Shows the preview of a form, unless a newer one was requested in the meantime.
async fn refresh_form_preview(form: &HtmlFormElement, is_newest: impl Fn() -> bool) {
    let Some(address) = form_url(form) else { return };
    let _busy = form.set_attribute("aria-busy", "true");
    let page = fetch_page(&address).await;
    if !is_newest() {
        return;
    }
    let _done = form.remove_attribute("aria-busy");
    let is_shown = page.is_ok_and(|page| replace_fragments(elements(form.query_selector_all("[data-part]")), &page));
    if let Ok(Some(failed)) = form.query_selector("[data-failed]") {
        let _toggled = failed.toggle_attribute_with_force("hidden", is_shown);
    }
    if is_shown && let Ok(history) = window().history() {
        let _replaced = history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&address));
    }
}

/// The address of the page for the values of a form; empty fields are left out.
fn form_url(form: &HtmlFormElement) -> Option<String> {
    let form_data = FormData::new_with_form(form).ok()?;
    let pairs: String = UrlSearchParams::new_with_str_sequence_sequence(&form_data).ok()?.to_string().into();
    let non_empty: Vec<&str> = pairs.split('&').filter(|pair| !pair.ends_with('=')).collect();
    Some(format!("{}?{}", form.get_attribute("data-live")?, non_empty.join("&")))
}
