use super::{StreamEvent, TabEvent, Unsubscribe};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::prefs::Theme;

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

pub(crate) fn copy(_text: &str) -> bool {
    false
}

pub(crate) fn set_theme(_theme: Theme) {}

pub(crate) fn share_of_width(_event: &leptos::ev::PointerEvent) -> f64 {
    0.0
}

pub(crate) fn submit_form_of(_event: &leptos::ev::Event) {}

pub(crate) async fn send(_method: &'static str, _path: String) -> Result<(), Problem> {
    Ok(())
}

pub(crate) fn subscribe(_url: &str, _listener: impl Fn(StreamEvent) + Clone + 'static) -> Option<Unsubscribe> {
    None
}
