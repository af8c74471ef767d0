//! The boxes of a list's rows, and the one above them.

use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlInputElement};

/// The box above the rows.
const ALL: &str = ".pick-all";

/// How many rows of a list are picked; the box above them shows whether all or some are.
pub(crate) fn count_picked(list: &Element) -> u32 {
    let rows = boxes(list);
    let (all, picked) = (rows.len(), rows.iter().filter(|row| row.checked()).count());
    if let Some(above) =
        list.query_selector(ALL).ok().flatten().and_then(|above| above.dyn_into::<HtmlInputElement>().ok())
    {
        above.set_checked(picked > 0 && picked == all);
        above.set_indeterminate(picked > 0 && picked < all);
    }
    u32::try_from(picked).unwrap_or(u32::MAX)
}

/// If it is the box above the rows that was changed, they become as it is.
pub(crate) fn pick_all(event: &Event, list: &Element) {
    let changed = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
    if let Some(above) = changed.filter(|changed| changed.matches(ALL).unwrap_or(false)) {
        for row in boxes(list) {
            row.set_checked(above.checked());
        }
    }
}

fn boxes(list: &Element) -> Vec<HtmlInputElement> {
    let Ok(found) = list.query_selector_all(".pick") else { return Vec::new() };
    (0..found.length()).filter_map(|index| found.get(index)?.dyn_into().ok()).collect()
}
