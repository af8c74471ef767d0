//! The checkboxes of a list: one per row, and one above that selects all rows.

use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlInputElement};

/// The checkbox above the rows.
const SELECT_ALL: &str = ".pick-all";

/// Counts the selected rows of a list. Also updates the checkbox above them: checked, unchecked, or indeterminate.
pub(crate) fn count_selected(list: &Element) -> u32 {
    let rows = row_checkboxes(list);
    let (all, selected) = (rows.len(), rows.iter().filter(|row| row.checked()).count());
    if let Some(select_all) = list
        .query_selector(SELECT_ALL)
        .ok()
        .flatten()
        .and_then(|select_all| select_all.dyn_into::<HtmlInputElement>().ok())
    {
        select_all.set_checked(selected > 0 && selected == all);
        select_all.set_indeterminate(selected > 0 && selected < all);
    }
    u32::try_from(selected).unwrap_or(u32::MAX)
}

/// If the checkbox above the rows was changed, applies its state to all rows.
pub(crate) fn apply_select_all(event: &Event, list: &Element) {
    let changed = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
    if let Some(select_all) = changed.filter(|changed| changed.matches(SELECT_ALL).unwrap_or(false)) {
        for row in row_checkboxes(list) {
            row.set_checked(select_all.checked());
        }
    }
}

fn row_checkboxes(list: &Element) -> Vec<HtmlInputElement> {
    let Ok(found) = list.query_selector_all(".pick") else { return Vec::new() };
    (0..found.length()).filter_map(|index| found.get(index)?.dyn_into().ok()).collect()
}
