//! The browser's side of the start; `browser/lib.rs` calls it.

use std::sync::Arc;

use leptos::prelude::*;

use crate::ui::port::SharedPort;
use crate::ui::{App, attend, browser, client, parts};

/// Brings the server's page to life.
pub fn hydrate() {
    console_error_panic_hook::set_once();
    // A plain page is the server's; there is nothing of it here to bring to life.
    if browser::is_plain() {
        attend::attend();
        return;
    }
    wasm_bindgen_futures::spawn_local(async {
        parts::before(&browser::path()).await;
        leptos::mount::hydrate_body(|| {
            provide_context::<SharedPort>(Arc::new(client::Rest));
            view! { <App/> }
        });
    });
}
