//! `/docs/api`: the description of the API for people. It is plain HTML that asks nobody for anything and runs no script.

mod example;
mod html;
mod page;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

pub use self::page::page;
use super::openapi::Description;
use super::openapi::doc::{Answer, Content, Doc};
use super::routes::{Access, Routes};
use super::{site, ui};
use crate::state::App;

/// The page needs a style sheet and a picture of this server, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Description").get("/docs/api", Access::Anyone, PAGE, show)
}

const PAGE: Doc = Doc {
    answers: &[Answer::with(200, "The page.", Content::Bytes(&["text/html"]))],
    ..Doc::of("readDescription", "This description as a page.")
};

async fn show(
    State(app): State<App>,
    Extension(description): Extension<Arc<Description>>,
    headers: HeaderMap,
) -> Response {
    let prefs = ui::prefs(&headers, app.core.now());
    let theme = prefs.theme.attribute().map(|theme| format!(" data-theme=\"{theme}\"")).unwrap_or_default();
    let top = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"{theme}><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
         <title>API · simpletuner</title><link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">\
         <link rel=\"stylesheet\" href=\"{}\"></head>\n",
        site::style_sheet(),
    );
    let named = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "cookie"),
    ];
    (named, top + description.page()).into_response()
}
