use super::{StreamEvent, TabEvent, Unsubscribe};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::prefs::Theme;
use crate::ui::shortcuts::Stroke;

/// Nobody has tabs here.
#[derive(Clone)]
pub(crate) struct Tabs;

#[expect(clippy::unused_self, reason = "as in a browser")]
impl Tabs {
    pub fn tell(&self, _text: &str) {}

    pub fn ask(&self) {}

    pub fn step_down(&self) {}
}

pub(crate) fn join(_listener: impl Fn(TabEvent) + 'static) -> Tabs {
    Tabs
}

pub(crate) fn is_shown() -> bool {
    false
}

pub(crate) fn tab_id() -> String {
    String::new()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::default()
}

pub(crate) fn address() -> String {
    String::new()
}

pub(crate) fn origin() -> String {
    String::new()
}

pub(crate) fn copy(_text: &str) -> bool {
    false
}

pub(crate) fn set_theme(_theme: Theme) {}

pub(crate) fn share_of_width(_event: &leptos::ev::PointerEvent) -> f64 {
    0.0
}

pub(crate) fn minutes_ahead(_at: Timestamp) -> i32 {
    0
}

pub(crate) fn keep(_text: &str) {}

pub(crate) fn recall() -> String {
    String::new()
}

pub(crate) fn stroke<'k>(_event: &leptos::ev::KeyboardEvent, key: &'k str) -> Stroke<'k> {
    Stroke { key, ..Stroke::default() }
}

pub(crate) fn attends(_selector: &str) -> bool {
    false
}

pub(crate) fn click(_selector: &str) {}

pub(crate) fn focus(_selectors: &[&str]) {}

pub(crate) fn press(_selector: &str) {}

pub(crate) fn step(_forward: bool) {}

pub(crate) fn in_row(_selector: &str) {}

pub(crate) fn open_option(_id: &str, _apart: bool) {}

pub(crate) fn reveal(_id: &str) {}

pub(crate) fn focus_summary(_event: &leptos::ev::KeyboardEvent) {}

pub(crate) fn place(_element: &leptos::web_sys::Element) -> (f64, f64) {
    (0.0, 0.0)
}

pub(crate) fn focused() -> Option<leptos::web_sys::Node> {
    None
}

pub(crate) fn refocus(_before: Option<leptos::web_sys::Node>) {}

pub(crate) fn count_picked(_list: &leptos::web_sys::Element) -> u32 {
    0
}

pub(crate) fn pick_all(_event: &leptos::ev::Event, _list: &leptos::web_sys::Element) {}

pub(crate) fn typed(_event: &leptos::ev::SubmitEvent, _name: &str) -> String {
    String::new()
}

pub(crate) async fn send(_method: &'static str, _path: String, _body: Option<String>) -> Result<(), Problem> {
    Ok(())
}

pub(crate) fn subscribe(_url: &str, _listener: impl Fn(StreamEvent) + Clone + 'static) -> Option<Unsubscribe> {
    None
}

pub(crate) fn submit_form_of(_event: &leptos::ev::Event) {}
