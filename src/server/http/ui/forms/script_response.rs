//! Responses to forms that a script has posted: what the next page would show, as JSON in the user's language.

use app::protocol::problem::Problem;
use app::ui::flash::FormResponse;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::request_context::current_locale;
use crate::http::state::AppState;
use crate::http::ui::FLASH_COOKIE;

/// Responds to a script with the flash message itself instead of a redirect to the page that shows it.
pub async fn respond_to_scripts(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if request.headers().get(header::ACCEPT) != Some(&HeaderValue::from_static("application/json")) {
        return next.run(request).await;
    }
    let response = next.run(request).await;
    let flash = flash_id(response.headers()).and_then(|id| app.flashes.take(id, app.services.context.now()));
    match flash.and_then(|flash| FormResponse::from_flash(flash, current_locale())) {
        Some(Ok(message)) => Json(message).into_response(),
        Some(Err(problem)) => problem_response(&problem),
        None => response,
    }
}

fn flash_id(headers: &HeaderMap) -> Option<&str> {
    let cookie = headers.get(header::SET_COOKIE)?.to_str().ok()?;
    cookie.strip_prefix(FLASH_COOKIE)?.strip_prefix('=')?.split(';').next()
}

fn problem_response(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = (status, Json(problem)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
