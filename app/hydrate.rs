//! The browser's side of the start; `browser/lib.rs` calls it.

use std::sync::Arc;

use leptos::prelude::*;

use crate::ui::backend::SharedBackend;
use crate::ui::{App, browser, enhance, http_backend, lazy_routes};

/// Brings the server's page to life.
pub fn hydrate() {
    console_error_panic_hook::set_once();
    // A plain page is the server's; there is nothing of it here to bring to life.
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
