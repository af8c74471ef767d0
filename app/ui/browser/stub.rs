use super::{PictureFormat, StreamEvent, Unsubscribe};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::flash::FormResponse;
use crate::ui::prefs::Theme;
use crate::ui::shortcuts::KeyPress;

pub(crate) fn on_visibility_change(_listener: impl Fn(bool) + 'static) {}

pub(crate) fn is_visible() -> bool {
    false
}

pub(crate) fn now() -> Timestamp {
    Timestamp::default()
}

pub(crate) fn path_and_query() -> String {
    String::new()
}

pub(crate) fn origin() -> String {
    String::new()
}

pub(crate) fn copy_to_clipboard(_text: &str) -> bool {
    false
}

pub(crate) fn set_theme(_theme: Theme) {}

pub(crate) fn pointer_fraction(_event: &leptos::ev::PointerEvent) -> f64 {
    0.0
}

pub(crate) fn column_widths(_event: &leptos::ev::PointerEvent) -> Vec<(String, f64)> {
    Vec::new()
}

pub(crate) fn close_enclosing_popover(_event: &leptos::ev::MouseEvent) {}

pub(crate) fn save_chart(_event: &leptos::ev::MouseEvent, _format: PictureFormat, _name: &str) {}

pub(crate) fn capture_pointer(_event: &leptos::ev::PointerEvent) {}

pub(crate) fn save_notifications(_text: &str) {}

pub(crate) fn load_notifications() -> String {
    String::new()
}

pub(crate) fn key_press<'k>(_event: &leptos::ev::KeyboardEvent, key: &'k str) -> KeyPress<'k> {
    KeyPress { key, ..KeyPress::default() }
}

pub(crate) fn is_hovered_or_focused(_selector: &str) -> bool {
    false
}

pub(crate) fn go_to(_href: &str) {}

pub(crate) fn focus_first(_selectors: &[&str]) {}

pub(crate) fn close_popovers(_click: &leptos::ev::MouseEvent) {}

pub(crate) fn activate_first(_selector: &str) {}

pub(crate) fn move_row_focus(_forward: bool) {}

pub(crate) fn click_in_row(_selector: &str) {}

pub(crate) fn open_option(_id: &str, _in_new_tab: bool) {}

pub(crate) fn scroll_to_option(_id: &str) {}

pub(crate) fn focus_summary(_event: &leptos::ev::KeyboardEvent) {}

pub(crate) fn top_and_height(_element: &leptos::web_sys::Element) -> (f64, f64) {
    (0.0, 0.0)
}

pub(crate) fn focused_node() -> Option<leptos::web_sys::Node> {
    None
}

pub(crate) fn restore_focus(_before: Option<leptos::web_sys::Node>) {}

pub(crate) fn count_selected(_list: &leptos::web_sys::Element) -> u32 {
    0
}

pub(crate) fn apply_select_all(_event: &leptos::ev::Event, _list: &leptos::web_sys::Element) {}

pub(crate) fn post_form(
    _event: &leptos::ev::SubmitEvent,
) -> impl Future<Output = Result<FormResponse, Problem>> + use<> {
    std::future::pending()
}

pub(crate) async fn check_session() -> Result<(), Problem> {
    Ok(())
}

pub(crate) fn subscribe(_url: &str, _listener: impl Fn(StreamEvent) + Clone + 'static) -> Option<Unsubscribe> {
    None
}

pub(crate) fn submit_enclosing_form(_event: &leptos::ev::Event) {}
