//! The browser's entry point, called by the script of the page. Everything else is in the library `app`.

use wasm_bindgen::prelude::wasm_bindgen;

/// Hydrates the page that the server rendered.
#[wasm_bindgen]
pub fn hydrate() {
    app::hydrate::hydrate();
}
