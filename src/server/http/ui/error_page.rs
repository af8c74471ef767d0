//! Errors as pages for browsers. The API returns problem documents.

use app::protocol::problem::Problem;
use app::ui::error_page::PageError;
use app::ui::error_shell;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leptos::prelude::provide_context;
use leptos_axum::render_app_async_with_context;
use serde_json::Value;

use super::{ScriptPolicy, provide_page_context};
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::request::Peer;
use crate::http::guards;
use crate::http::problem::method_not_allowed;
use crate::http::request_context::current_locale;
use crate::http::state::AppState;
use crate::text::local_path;

/// The maximum size of a problem document.
const MAX_PROBLEM_BYTES: usize = 1 << 20;

/// Replaces problem documents with error pages for browsers.
pub async fn render_problems(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if !wants_html(request.uri().path(), request.headers()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let page_request = parts.clone();
    let response = next.run(Request::from_parts(parts, body)).await;
    let is_document = has_content_type(response.headers(), "application/problem+json");
    // A page that does not accept the method returns an empty response.
    let is_empty_response =
        response.status() == StatusCode::METHOD_NOT_ALLOWED && !has_content_type(response.headers(), "");
    if is_empty_response {
        return render_page(&app, page_request, method_not_allowed().to_problem(current_locale()), response).await;
    }
    if !is_document {
        return response;
    }
    let (response_parts, body) = response.into_parts();
    let bytes = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let Some(problem) = parse_problem(&bytes) else { return Response::from_parts(response_parts, Body::from(bytes)) };
    render_page(&app, page_request, problem, Response::from_parts(response_parts, Body::empty())).await
}

/// Returns whether the request comes from a browser that expects a page.
fn wants_html(path: &str, headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let for_programs = path == "/api" || path.starts_with("/api/");
    !for_programs && accepts.contains("text/html")
}

fn has_content_type(headers: &HeaderMap, expected: &str) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|content_type| content_type.to_str().is_ok_and(|content_type| content_type.starts_with(expected)))
}

/// Parses a problem with all its fields as parameters.
fn parse_problem(document: &[u8]) -> Option<Problem> {
    let mut problem: Problem = serde_json::from_slice(document).ok()?;
    let fields: serde_json::Map<String, Value> = serde_json::from_slice(document).ok()?;
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    problem.params = fields.into_iter().map(|(name, value)| (name, text(value))).collect();
    Some(problem)
}

/// Renders the error page, with the status and the headers of the response that it replaces.
async fn render_page(app: &AppState, mut page_request: Parts, problem: Problem, original: Response) -> Response {
    let peer = page_request.extensions.get::<Peer>().map(|Peer(host)| *host);
    let scheme = Scheme::from_extensions(&page_request.extensions);
    if let Ok(principal) = guards::identify(app, &page_request.headers, scheme, peer).await {
        page_request.extensions.insert(principal);
    }
    page_request.method = Method::GET;
    let down_since = (problem.code == "database_unavailable")
        .then(|| app.services.context.leadership.database_unavailable_since())
        .flatten();
    let path_and_query = page_request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let page_error =
        PageError { problem, database_down_since: down_since, path: local_path(path_and_query).to_owned() };
    let (context, options) = (app.clone(), app.leptos_options.clone());
    let provide = move || {
        provide_page_context(&context, ScriptPolicy::None);
        provide_context(page_error.clone());
    };
    let render = render_app_async_with_context(provide, move || error_shell(options.clone()));
    let mut page = app
        .render_limiter
        .run_to_completion(render(Request::from_parts(page_request, Body::empty())))
        .await
        .into_response();
    *page.status_mut() = original.status();
    for (name, value) in original.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH && !page.headers().contains_key(name) {
            page.headers_mut().append(name, value.clone());
        }
    }
    page
}
