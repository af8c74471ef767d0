//! The document of a server-rendered page: mounts client components in it, and refreshes its fragments.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use gloo_net::http::Request;
use js_sys::Promise;
use leptos::mount::mount_to_renderer;
use leptos::prelude::{AnyView, document, set_timeout};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Document, DomParser, Element, NodeList, SupportedType};

use super::dom::path_and_query;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::FRAGMENTS_HEADER;
use crate::ui::http_backend::network_error;

/// Fragments that are refreshed. Those in a live form are replaced by [`super::interactions`] instead.
const FRAGMENTS: &str = "main [data-part]:not([data-live] *)";

/// Fragments that the user points at, types in, or has expanded.
const IN_USE: &str = ":hover, :focus-within, :has(details[open])";
/// The delay before a fragment in use is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the page is rendered on the server only.
pub(crate) fn is_server_rendered() -> bool {
    document().document_element().is_some_and(|root| root.class_list().contains("is-plain"))
}

/// The start data of the page, if it has any.
pub(crate) fn boot_json() -> Option<String> {
    document().get_element_by_id("words")?.get_attribute("data-boot")
}

/// Mounts a component in each placeholder of this name, in place of its server-rendered content.
pub(crate) fn mount(name: &str, view: impl Fn() -> AnyView + Clone + 'static) {
    for placeholder in elements(document().query_selector_all(&format!("[data-mount={name}]"))) {
        placeholder.set_text_content(None);
        let view = view.clone();
        // It stays mounted for as long as the page is open.
        mount_to_renderer(&placeholder, view).forget();
    }
}

/// Updates all timestamps of a page; `format_age` returns the age and the full text of a time.
pub(crate) fn update_timestamps(page: &Document, format_age: impl Fn(Timestamp) -> (String, String)) {
    for time in elements(page.query_selector_all("main time[datetime]")) {
        let at = time.get_attribute("datetime").and_then(|text| Timestamp::parse_rfc3339(&text));
        let (Some(at), Ok(Some(age))) = (at, time.query_selector(".moment")) else { continue };
        let (ago, full) = format_age(at);
        if age.text_content().as_ref() != Some(&ago) {
            age.set_text_content(Some(&ago));
        }
        let _titled = age.set_attribute("title", &full);
        if let Ok(Some(full_time)) = time.query_selector(".no-js-only") {
            full_time.set_text_content(Some(&full));
        }
    }
}

/// Marks the page as stale or current.
pub(crate) fn mark_stale(is_stale: bool) {
    if let Ok(Some(frame)) = document().query_selector(".frame") {
        let _marked = frame.class_list().toggle_with_force("is-stale", is_stale);
    }
}

/// Whether the page has fragments to refresh.
pub(crate) fn has_fragments() -> bool {
    document().query_selector(FRAGMENTS).is_ok_and(|fragment| fragment.is_some())
}

/// Applies a newly fetched page to the open one, fragment by fragment. Fragments in use are replaced when they no
/// longer are.
pub(crate) struct FragmentRefresher<T> {
    /// Updates the timestamps of a fetched page, so that only real changes differ.
    update_timestamps: T,
    newest: RefCell<Option<Document>>,
    is_waiting: Cell<bool>,
}

impl<T: Fn(&Document) + 'static> FragmentRefresher<T> {
    pub(crate) const fn new(update_timestamps: T) -> Self {
        Self { update_timestamps, newest: RefCell::new(None), is_waiting: Cell::new(false) }
    }

    /// Fetches the page again and replaces its fragments.
    ///
    /// # Errors
    /// If the page cannot be fetched. A redirect counts as 401: the user may no longer see the page.
    pub(crate) async fn refresh(self: Rc<Self>) -> Result<(), Problem> {
        let page = fetch_page(&path_and_query()).await?;
        self.newest.replace(Some(page));
        if self.apply() && !self.is_waiting.replace(true) {
            spawn_local(async move {
                while self.apply() {
                    sleep(RETRY_INTERVAL).await;
                }
                self.is_waiting.set(false);
            });
        }
        Ok(())
    }

    /// Applies the newest page to all fragments that are not in use. Returns whether changes are still pending.
    fn apply(&self) -> bool {
        let newest = self.newest.borrow();
        let Some(page) = newest.as_ref() else { return false };
        (self.update_timestamps)(page);
        let (busy, free): (Vec<_>, Vec<_>) = elements(document().query_selector_all(FRAGMENTS))
            .partition(|fragment| fragment.matches(IN_USE).unwrap_or(false));
        replace_fragments(free.into_iter(), page);
        let is_new = |(fragment, new): (&Element, Element)| !fragment.is_equal_node(Some(&new));
        busy.iter().filter_map(|fragment| Some((fragment, matching_fragment(fragment, page)?))).any(is_new)
    }
}

async fn sleep(length: Duration) {
    #[expect(clippy::disallowed_methods, reason = "it resolves a promise and reads no signal")]
    let timeout = Promise::new(&mut |resolve, _| set_timeout(move || drop(resolve.call0(&JsValue::NULL)), length));
    drop(JsFuture::from(timeout).await);
}

/// Fetches a page of the dashboard.
pub(super) async fn fetch_page(address: &str) -> Result<Document, Problem> {
    let response = Request::get(address).header(FRAGMENTS_HEADER, "1").send().await.map_err(network_error)?;
    let status = if response.redirected() { 401 } else { response.status() };
    if status != 200 {
        return Err(Problem::new(status, &response.status_text(), "http_error", response.status_text()));
    }
    let text = response.text().await.map_err(network_error)?;
    let page = DomParser::new().and_then(|parser| parser.parse_from_string(&text, SupportedType::TextHtml));
    page.map_err(|_| Problem::new(502, "Bad Gateway", "bad_answer", "the response is not a page"))
}

/// Replaces each fragment by its counterpart in `page`. Returns whether there were any.
pub(super) fn replace_fragments(fragments: impl Iterator<Item = Element>, page: &Document) -> bool {
    let mut has_counterpart = false;
    for fragment in fragments {
        let Some(counterpart) = matching_fragment(&fragment, page) else { continue };
        has_counterpart = true;
        // An unchanged fragment keeps its selection, and a screen reader does not read it again.
        if fragment.is_equal_node(Some(&counterpart)) {
            continue;
        }
        // A copy, because the fetched page is needed again if another fragment is in use.
        let Ok(counterpart) = counterpart.clone_node_with_deep(true) else { continue };
        fragment.set_text_content(None);
        while let Some(child) = counterpart.first_child() {
            let _moved = fragment.append_child(&child);
        }
    }
    has_counterpart
}

/// The counterpart of a fragment in another page.
fn matching_fragment(fragment: &Element, page: &Document) -> Option<Element> {
    page.query_selector(&format!("[data-part={}]", fragment.get_attribute("data-part")?)).ok()?
}

/// The elements in a list of nodes.
pub(crate) fn elements<E>(list: Result<NodeList, E>) -> impl Iterator<Item = Element> {
    let nodes = list.ok().into_iter().flat_map(|list| (0..list.length()).map(move |index| list.item(index)));
    nodes.filter_map(|node| node?.dyn_into::<Element>().ok())
}
