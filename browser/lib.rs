//! The browser's entry point: what the page's script calls. Everything else is in the library.

use wasm_bindgen::prelude::wasm_bindgen;

/// Brings the page that the server rendered to life.
#[wasm_bindgen]
pub fn hydrate() {
    app::hydrate::hydrate();
}
