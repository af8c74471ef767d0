//! `/docs/api`: the API reference as plain HTML without scripts or external resources.

mod example;
mod html;
mod page;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

pub use self::page::render_page;
use super::openapi::ApiDescription;
use super::routes::{RouteAccess, Routes};
use super::site;
use crate::http::edge::prefs::prefs_from_headers;
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::state::AppState;

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Description").get("/docs/api", RouteAccess::Anyone, PAGE, show)
}

const PAGE: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "The page.", ContentDoc::Bytes(&["text/html"]))],
    ..OperationDoc::new("readDescription", "Shows the API reference as a page.")
};

async fn show(
    State(app): State<AppState>,
    Extension(description): Extension<Arc<ApiDescription>>,
    headers: HeaderMap,
) -> Response {
    let prefs = prefs_from_headers(&headers, app.services.context.now());
    let theme = prefs.theme.attribute().map(|theme| format!(" data-theme=\"{theme}\"")).unwrap_or_default();
    let head = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"{theme}><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
         <title>API · simpletuner</title><link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">\
         <link rel=\"stylesheet\" href=\"{}\"></head>\n",
        site::style_sheet(),
    );
    let response_headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "cookie"),
    ];
    (response_headers, head + description.page()).into_response()
}
