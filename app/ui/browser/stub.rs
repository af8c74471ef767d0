use super::{StreamEvent, Unsubscribe};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::prefs::Theme;

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
