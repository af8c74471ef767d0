//! Entry point of the dashboard in the browser, called by `browser/lib.rs`.

use std::sync::Arc;

use leptos::prelude::*;

use crate::ui::backend::SharedBackend;
use crate::ui::{App, browser, enhance, http_backend, lazy_routes};

/// Hydrates the page that the server rendered.
pub fn hydrate() {
    console_error_panic_hook::set_once();
    // A server-rendered page has no views to hydrate.
    if browser::is_server_rendered() {
        enhance::enhance();
        return;
    }
    wasm_bindgen_futures::spawn_local(async {
        lazy_routes::preload(&browser::path()).await;
        leptos::mount::hydrate_body(|| {
            provide_context::<SharedBackend>(Arc::new(http_backend::HttpBackend));
            view! { <App/> }
        });
    });
}
