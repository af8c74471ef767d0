//! Help on a plain page: its form is checked as one types, and commands are copied.
//!
//! The server renders such a page for whatever its form holds (`GET`), so the browser asks for the same page again and puts
//! what is marked (`data-part`) in the place of what was there. The page's own address follows, as if its button had been
//! pressed. None of the page's code is here.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gloo_net::http::Request;
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Document, DomParser, Element, Event, FormData, HtmlFormElement, SupportedType, UrlSearchParams};

use super::real::copy;

/// How long somebody pauses who has typed a word.
const PAUSE: Duration = Duration::from_millis(250);

/// Helps, if the page is a plain one; says whether it is.
pub(crate) fn help() -> bool {
    let Some(root) = document().document_element().filter(|root| root.class_list().contains("is-plain")) else {
        return false;
    };
    let _marked = root.class_list().add_1("is-helped");
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
        let ask = move || spawn_local(async move { check(&form, || newest.get() == number).await });
        waiting.set(set_timeout_with_handle(ask, PAUSE).ok());
    });
    listen("click", |target| {
        let Some(button) = target.closest("[data-copy]").ok().flatten() else { return };
        let text = button.previous_element_sibling().and_then(|text| text.text_content());
        let _shown = button.class_list().toggle_with_force("is-copied", text.is_some_and(|text| copy(&text)));
    });
    true
}

fn listen(event: &str, heard: impl Fn(Element) + 'static) {
    let heard = Closure::<dyn Fn(Event)>::new(move |event: Event| {
        if let Some(target) = event.target().and_then(|target| target.dyn_into::<Element>().ok()) {
            heard(target);
        }
    });
    let _listens = document().add_event_listener_with_callback(event, heard.as_ref().unchecked_ref());
    // As long as the page.
    heard.forget();
}

/// Shows what the form's page would show, unless something newer was asked meanwhile.
async fn check(form: &HtmlFormElement, is_newest: impl Fn() -> bool) {
    let Some(address) = address(form) else { return };
    let _busy = form.set_attribute("aria-busy", "true");
    let page = match Request::get(&address).send().await {
        Ok(answer) if answer.ok() => answer.text().await.ok(),
        _ => None,
    };
    if !is_newest() {
        return;
    }
    let _done = form.remove_attribute("aria-busy");
    let page = page.and_then(|page| DomParser::new().ok()?.parse_from_string(&page, SupportedType::TextHtml).ok());
    let is_shown = page.is_some_and(|page| put(form, &page));
    if let Ok(Some(failed)) = form.query_selector("[data-failed]") {
        let _said = failed.toggle_attribute_with_force("hidden", is_shown);
    }
    if is_shown && let Ok(history) = window().history() {
        let _kept = history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&address));
    }
}

/// The page of what the form holds; fields that are empty are left out.
fn address(form: &HtmlFormElement) -> Option<String> {
    let held = FormData::new_with_form(form).ok()?;
    let pairs: String = UrlSearchParams::new_with_str_sequence_sequence(&held).ok()?.to_string().into();
    let filled: Vec<&str> = pairs.split('&').filter(|pair| !pair.ends_with('=')).collect();
    Some(format!("{}?{}", form.get_attribute("data-live")?, filled.join("&")))
}

/// Puts each marked part of a page in the place of the one before; says whether there were any.
fn put(form: &HtmlFormElement, page: &Document) -> bool {
    let Ok(places) = form.query_selector_all("[data-part]") else { return false };
    let mut found = false;
    for place in (0..places.length()).filter_map(|at| places.item(at)?.dyn_into::<Element>().ok()) {
        let name = place.get_attribute("data-part").unwrap_or_default();
        let Ok(Some(part)) = page.query_selector(&format!("[data-part={name}]")) else { continue };
        found = true;
        // What stays the same keeps its selection, and is not read aloud again.
        if place.is_equal_node(Some(&part)) {
            continue;
        }
        place.set_text_content(None);
        while let Some(child) = part.first_child() {
            let _moved = place.append_child(&child);
        }
    }
    found
}
