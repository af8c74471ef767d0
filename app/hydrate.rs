//! The browser's entry point.

use std::sync::Arc;

use leptos::prelude::*;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ui::port::SharedPort;
use crate::ui::{App, client};

/// Brings the server's page to life.
#[wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(|| {
        provide_context::<SharedPort>(Arc::new(client::Rest));
        view! { <App/> }
    });
}
