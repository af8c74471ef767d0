//! Login, logout, theme.

use app::ui::flash::{Flash, FormName, Notice};
use app::ui::prefs::Theme;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};

use super::{Fields, answer, field, refused};
use crate::http::arrival::Scheme;
use crate::http::request::caller;
use crate::http::session_cookie;
use crate::state::App;
use crate::text::{local_path, percent_escaped};

/// `POST /ui/login`: an admin token, or the setup code.
pub async fn log_in(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    Form(fields): Form<Fields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let secret = field(&fields, "token").unwrap_or_default();
    match app.core.log_in(caller("anonymous"), secret).await {
        Err(refusal) => {
            let back = format!("/login?next={}", percent_escaped(&next));
            refused(&app, &back, FormName::Login, refusal, Fields::new())
        }
        Ok(session) => {
            let mut response = match session.new_token {
                Some(token) => answer(&app, &next, Flash::AdminToken { token }),
                None => Redirect::to(&next).into_response(),
            };
            let week = 7 * 24 * 3_600;
            if let Ok(value) = HeaderValue::from_str(&session_cookie::set(scheme, &session.cookie, week)) {
                response.headers_mut().append(header::SET_COOKIE, value);
            }
            response
        }
    }
}

/// `POST /ui/logout`
pub async fn log_out(State(app): State<App>, Extension(scheme): Extension<Scheme>, headers: HeaderMap) -> Response {
    if let Some(secret) = session_cookie::read(&headers, scheme)
        && let Err(refusal) = app.core.log_out(caller("anonymous"), secret).await
    {
        return refused(&app, "/", FormName::Action, refusal, Fields::new());
    }
    let mut response = answer(&app, "/login", Flash::Notice { code: Notice::SignedOut });
    if let Ok(gone) = HeaderValue::from_str(&session_cookie::set(scheme, "", 0)) {
        response.headers_mut().append(header::SET_COOKIE, gone);
    }
    response
}

/// `POST /ui/theme`
pub async fn set_theme(Form(fields): Form<Fields>) -> Response {
    let theme = field(&fields, "theme").and_then(Theme::parse).unwrap_or_default();
    let next = local_path(field(&fields, "next").unwrap_or("/"));
    let cookie = format!("theme={}; Path=/; Max-Age=31536000; SameSite=Lax", theme.as_str());
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}
