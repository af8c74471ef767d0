//! The HTML document around a page, rendered on the server only. It sets theme and density before the first paint, so
//! that the page does not flash.

use leptos::config::LeptosOptions;
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::{HashedStylesheet, MetaTags};

use crate::ui::app::App;
use crate::ui::boot::Boot;
use crate::ui::error_page::ErrorPageApp;
use crate::ui::i18n::t;
use crate::ui::prefs::{Density, Prefs};
use crate::ui::server_rendered::ServerRenderedApp;

/// Reports the browser's time zone to the server, for later pages; the pages' program determines it itself. It does so
/// after the first paint, which loading the browser's locale data would delay by 13 ms.
const TIME_ZONE_SCRIPT: &str = include_str!("time_zone/script.js");

/// The document of a hydrated page.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let scripts = options.clone();
    // The browser's program contains no sentences of its own.
    let page = || view! { <App/> <template id="words" data-words=t().embedded()></template> };
    html_document(options, "", move || view! { <HydrationScripts options=scripts/> }, page)
}

/// The document of a server-rendered page, which `enhance.rs` makes interactive.
pub fn server_rendered_shell(options: LeptosOptions) -> impl IntoView {
    let scripts = options.clone();
    // Without a valid state, the page's script mounts nothing.
    let boot = serde_json::to_string(&Boot::from_context()).unwrap_or_default();
    let page =
        || view! { <ServerRenderedApp/> <template id="words" data-words=t().embedded() data-boot=boot></template> };
    html_document(options, "is-plain has-help", move || view! { <HydrationScripts options=scripts/> }, page)
}

/// The document of the sign-in page: without scripts, and without elements that need them.
pub fn login_shell(options: LeptosOptions) -> impl IntoView {
    html_document(options, "is-plain", || (), || view! { <ServerRenderedApp/> })
}

/// The document of an error page.
pub fn error_shell(options: LeptosOptions) -> impl IntoView {
    html_document(options, "is-plain", || (), || view! { <ErrorPageApp/> })
}

fn html_document<S: IntoView, P: IntoView>(
    options: LeptosOptions,
    kind: &'static str,
    scripts: impl FnOnce() -> S,
    page: impl FnOnce() -> P,
) -> impl IntoView {
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let class = match prefs.density {
        Density::Comfortable => kind.to_owned(),
        Density::Compact => format!("{kind} is-compact").trim_start().to_owned(),
    };
    view! {
        <!DOCTYPE html>
        <html lang=prefs.locale.tag() data-theme=prefs.theme.attribute() class=class>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <meta name="robots" content="noindex"/>
                <script nonce=use_nonce()>{TIME_ZONE_SCRIPT}</script>
                <link rel="icon" href="/favicon.svg" type="image/svg+xml"/>
                <HashedStylesheet options=options id="simpletuner"/>
                {scripts()}
                <MetaTags/>
            </head>
            <body>{page()}</body>
        </html>
    }
}
