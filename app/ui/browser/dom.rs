use std::cell::OnceCell;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{
    Element, EventSource, FocusOptions, FormData, HtmlDocument, HtmlElement, HtmlFormElement, HtmlTextAreaElement,
    MessageEvent, UrlSearchParams,
};

use super::{StreamEvent, Unsubscribe};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::flash::FormResponse;
use crate::ui::http_backend;
use crate::ui::prefs::{Theme, preference_cookie};

pub(crate) fn now() -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "whole milliseconds, far below 2^53")]
    Timestamp(js_sys::Date::now() as i64)
}

/// The path of the page.
pub(crate) fn path() -> String {
    window().location().pathname().unwrap_or_default()
}

/// The path and query of the page.
pub(crate) fn path_and_query() -> String {
    path() + &window().location().search().unwrap_or_default()
}

/// The origin of the page: scheme, host, and port.
pub(crate) fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

/// Copies text to the clipboard. Returns false if that is known to have failed.
///
/// The clipboard API exists on https and localhost only, but an orchestrator is often used over plain http in a private
/// network. There, the older way through a selected text field still works.
pub(crate) fn copy_to_clipboard(text: &str) -> bool {
    let navigator = window().navigator();
    let has_api = js_sys::Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|value| !value.is_undefined());
    if has_api {
        drop(navigator.clipboard().write_text(text));
        return true;
    }
    copy_by_selection(text).unwrap_or(false)
}

fn copy_by_selection(text: &str) -> Option<bool> {
    let document = document();
    let field: HtmlTextAreaElement = document.create_element("textarea").ok()?.dyn_into().ok()?;
    field.set_value(text);
    field.set_class_name("sr-only");
    document.body()?.append_child(&field).ok()?;
    field.select();
    let copied = document.dyn_into::<HtmlDocument>().ok()?.exec_command("copy").ok();
    field.remove();
    copied
}

/// Applies the theme, and stores it. Without a request: its user may leave the page before the response.
pub(crate) fn set_theme(theme: Theme) {
    if let Some(root) = document().document_element() {
        let _shown = match theme.attribute() {
            Some(name) => root.set_attribute("data-theme", name),
            None => root.remove_attribute("data-theme"),
        };
    }
    // Without cookies, the next visit shows the previous theme.
    if let Ok(document) = document().dyn_into::<HtmlDocument>() {
        let _stored = document.set_cookie(&preference_cookie("theme", theme.as_str()));
    }
}

/// The horizontal position of the pointer in the element that listens, from 0 (left edge) to 1 (right edge).
pub(crate) fn pointer_fraction(event: &leptos::ev::PointerEvent) -> f64 {
    let element = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
    element.map_or(0.0, |element| {
        let rect = element.get_bounding_client_rect();
        (f64::from(event.client_x()) - rect.left()) / rect.width()
    })
}

/// Returns the widths of all columns of the table, by the names that their headings have as data.
pub(crate) fn column_widths(event: &leptos::ev::PointerEvent) -> Vec<(String, f64)> {
    let element = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
    let row = element.and_then(|element| element.closest("tr").ok().flatten());
    let Some(cells) = row.and_then(|row| row.query_selector_all("[data-column]").ok()) else { return Vec::new() };
    let cells = (0..cells.length()).filter_map(|index| cells.get(index)?.dyn_into::<Element>().ok());
    let width = |cell: Element| Some((cell.get_attribute("data-column")?, cell.get_bounding_client_rect().width()));
    cells.filter_map(width).collect()
}

/// Sends all events of the pointer to the element that listens, until its button is released.
pub(crate) fn capture_pointer(event: &leptos::ev::PointerEvent) {
    if let Some(element) = event.current_target().and_then(|target| target.dyn_into::<Element>().ok()) {
        // It fails only if the button is no longer pressed.
        let _captured = element.set_pointer_capture(event.pointer_id());
    }
}

/// The distance of an element from the upper edge of the window, and its height.
pub(crate) fn top_and_height(element: &Element) -> (f64, f64) {
    let rect = element.get_bounding_client_rect();
    (rect.top(), rect.height())
}

/// The element that has the focus; none if it is the body.
pub(crate) fn focused_node() -> Option<web_sys::Node> {
    document().active_element().filter(|element| element.tag_name() != "BODY").map(Into::into)
}

/// Returns the focus to the element that had it, if that is still in the document and nothing else has the focus.
pub(crate) fn restore_focus(before: Option<web_sys::Node>) {
    if focused_node().is_none()
        && let Some(before) = before.filter(web_sys::Node::is_connected)
    {
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        // SVG elements can be focused in the same way as HTML elements.
        drop(before.unchecked_into::<HtmlElement>().focus_with_options(&options));
    }
}

/// Submits the form around an element, as its submit button would.
pub(crate) fn submit_enclosing_form(event: &leptos::ev::Event) {
    let element = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let form = element.and_then(|element| element.closest("form").ok().flatten());
    if let Some(form) = form.and_then(|form| form.dyn_into::<HtmlFormElement>().ok()) {
        // If a field is invalid, the browser shows why next to it.
        let _sent = form.request_submit();
    }
}

thread_local! {
    static TIME_ZONE: OnceCell<String> = const { OnceCell::new() };
}

/// The name of the user's time zone; empty if unknown.
pub(crate) fn time_zone() -> String {
    TIME_ZONE.with(|zone| zone.get_or_init(read_time_zone).clone())
}

fn read_time_zone() -> String {
    let format = js_sys::Intl::DateTimeFormat::new(&js_sys::Array::new(), &js_sys::Object::new());
    let zone = js_sys::Reflect::get(&format.resolved_options(), &"timeZone".into());
    zone.ok().and_then(|zone| zone.as_string()).unwrap_or_default()
}

/// The user's offset from UTC at a time, in minutes; positive to the east.
pub(crate) fn utc_offset_minutes(at: Timestamp) -> i32 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds, far below 2^53")]
    let date = js_sys::Date::new(&(at.0 as f64).into());
    #[expect(clippy::cast_possible_truncation, reason = "minutes of a day")]
    let minutes_behind_utc = date.get_timezone_offset() as i32;
    -minutes_behind_utc
}

/// The key in the session storage.
const NOTIFICATIONS_KEY: &str = "notes";

/// Stores notifications for as long as the tab is open. If storage is not permitted, notifications are lost only when
/// another document is loaded.
pub(crate) fn save_notifications(text: &str) {
    if let Ok(Some(storage)) = window().session_storage() {
        let _stored = storage.set_item(NOTIFICATIONS_KEY, text);
    }
}

/// The notifications that [`save_notifications`] has stored; empty if there are none.
pub(crate) fn load_notifications() -> String {
    let storage = window().session_storage().ok().flatten();
    storage.and_then(|storage| storage.get_item(NOTIFICATIONS_KEY).ok()?).unwrap_or_default()
}

/// Posts the submitted form, and returns the message that the next page would show.
pub(crate) fn post_form(
    event: &leptos::ev::SubmitEvent,
) -> impl Future<Output = Result<FormResponse, Problem>> + use<> {
    let form = event.target().and_then(|target| target.dyn_into::<HtmlFormElement>().ok());
    let path = form.as_ref().map(HtmlFormElement::action).unwrap_or_default();
    let fields = form.and_then(|form| FormData::new_with_form(&form).ok());
    let fields = fields.and_then(|fields| UrlSearchParams::new_with_str_sequence_sequence(&fields).ok());
    let body = fields.map(|fields| String::from(fields.to_string())).unwrap_or_default();
    async move { http_backend::post_form(&path, body).await }
}

/// Fails if the session has ended, or the server does not respond.
pub(crate) async fn check_session() -> Result<(), Problem> {
    http_backend::check_session().await
}

/// Listens to an event stream until it fails or the returned function is called.
pub(crate) fn subscribe(url: &str, listener: impl Fn(StreamEvent) + Clone + 'static) -> Option<Unsubscribe> {
    let source = EventSource::new(url).ok()?;
    let opened = {
        let listener = listener.clone();
        Closure::<dyn Fn()>::new(move || listener(StreamEvent::Opened))
    };
    let message = {
        let listener = listener.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            listener(StreamEvent::Message(event.data().as_string().unwrap_or_default()));
        })
    };
    let pings = {
        let listener = listener.clone();
        Closure::<dyn Fn()>::new(move || listener(StreamEvent::KeepAlive))
    };
    let failed = {
        let source = source.clone();
        Closure::<dyn Fn()>::new(move || {
            // The browser would reconnect to the same address, which resumes after an old version. Instead, a new
            // stream is opened.
            source.close();
            listener(StreamEvent::Failed);
        })
    };
    source.set_onopen(Some(opened.as_ref().unchecked_ref()));
    source.set_onmessage(Some(message.as_ref().unchecked_ref()));
    source.set_onerror(Some(failed.as_ref().unchecked_ref()));
    // `onmessage` does not receive this named event, which only keeps the stream alive.
    source.add_event_listener_with_callback("ping", pings.as_ref().unchecked_ref()).ok()?;
    let subscription = send_wrapper::SendWrapper::new((source, opened, message, pings, failed));
    Some(Box::new(move || {
        let (source, ..) = &*subscription;
        source.set_onopen(None);
        source.set_onmessage(None);
        source.set_onerror(None);
        source.close();
    }))
}
