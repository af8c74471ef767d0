//! Forms that require the password again, and the second factor. If it is missing, the response is a page
//! that asks for it and contains all fields of the form, so that it does not have to be filled in again.
//! The server stores none of them.

use app::ui::flash::{Flash, FormName};
use app::ui::pending::{PASSWORD_FIELD, PROOF_FIELDS, PendingForm};
use app::ui::server_rendered_shell;
use axum::body::{Body, Bytes};
use axum::extract::{Form, FromRequest, OriginalUri, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leptos::prelude::provide_context;
use leptos_axum::render_app_async_with_context;

use super::FormFields;
use super::access::second_factor_from;
use crate::http::access::password_attempts::reauthenticate;
use crate::http::edge::json;
use crate::http::edge::request::Peer;
use crate::http::problem::ApiError;
use crate::http::request_context::current_locale;
use crate::http::state::AppState;
use crate::http::ui::{ScriptPolicy, provide_page_context};
use crate::service::access::{Principal, ReauthProof};
use crate::service::error::ServiceError;

type Pairs = Vec<(String, String)>;

/// Marks a response to a form that requires the password.
#[derive(Debug, Clone, Copy)]
struct ReauthRequired;

/// Returns the response to a form that requires the password; [`check_reauth`] replaces it with a page.
pub fn reauth_required() -> Response {
    let mut response = StatusCode::FORBIDDEN.into_response();
    response.extensions_mut().insert(ReauthRequired);
    response
}

/// Verifies the password that is submitted with a form, and asks for it if the handler requires it.
pub async fn check_reauth(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let bytes = match json::read_body(Request::from_parts(parts.clone(), body), &()).await {
        Ok(bytes) => bytes,
        Err(error) => return error.into_response(),
    };
    let copy = Request::from_parts(parts.clone(), Body::from(bytes.clone()));
    let Ok(Form(pairs)) = Form::<Pairs>::from_request(copy, &()).await else {
        return next.run(Request::from_parts(parts, Body::from(bytes))).await;
    };
    let (proofs, fields): (Pairs, Pairs) =
        pairs.into_iter().partition(|(name, _)| PROOF_FIELDS.contains(&name.as_str()));
    let proofs: FormFields = proofs.into_iter().collect();
    if let Some(password) = proofs.get(PASSWORD_FIELD)
        && let Some(mut principal) = parts.extensions.get::<Principal>().cloned()
    {
        let peer = parts.extensions.get::<Peer>().map(|Peer(host)| *host);
        let proof = ReauthProof { secret: password.clone(), ..second_factor_from(&proofs) };
        if let Err(error) = reauthenticate(&app, &principal, peer, proof).await {
            return render_reauth_page(&app, parts, fields, error).await;
        }
        principal.reauthenticated_at = principal.reauthenticated_at.map(|_| app.services.context.now());
        parts.extensions.insert(principal);
    }
    let page_request = parts.clone();
    parts.headers.remove(header::CONTENT_LENGTH);
    // The page `/confirm` uses another name for its password, so its form is passed on unchanged.
    let body_bytes = if proofs.contains_key(PASSWORD_FIELD) { without_proof(&bytes) } else { bytes.to_vec() };
    let response = next.run(Request::from_parts(parts, Body::from(body_bytes))).await;
    if response.extensions().get::<ReauthRequired>().is_some() {
        render_reauth_page(&app, page_request, fields, ServiceError::RecentAuthRequired).await
    } else {
        response
    }
}

/// Removes the proofs from a form, so that no password is stored, not even with a rejected form.
fn without_proof(form: &Bytes) -> Vec<u8> {
    let name = |field: &[u8]| field.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    let is_proof = |field: &&[u8]| PROOF_FIELDS.iter().any(|proof| name(field) == proof.as_bytes());
    let remaining: Vec<&[u8]> = form.split(|byte| *byte == b'&').filter(|field| !is_proof(field)).collect();
    remaining.join(&b'&')
}

/// Renders the page that asks for the password and contains the form.
async fn render_reauth_page(app: &AppState, mut page_request: Parts, fields: Pairs, error: ServiceError) -> Response {
    let uri = page_request.extensions.get::<OriginalUri>().map_or(&page_request.uri, |OriginalUri(original)| original);
    let pending = PendingForm { action: uri.path().to_owned(), fields };
    let is_rejected = error != ServiceError::RecentAuthRequired;
    let locale = current_locale();
    let problem = ApiError::from(error).to_problem(locale);
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    let flash = Flash::Problem { form: FormName::Password, problem, fields: FormFields::new() };
    let flash = is_rejected.then(|| flash.for_page(locale));
    page_request.method = Method::GET;
    page_request.uri = Uri::from_static("/confirm");
    page_request.headers.remove(header::CONTENT_TYPE);
    page_request.headers.remove(header::CONTENT_LENGTH);
    let (context, options) = (app.clone(), app.leptos_options.clone());
    let provide = move || {
        provide_page_context(&context, ScriptPolicy::Bundle);
        provide_context::<Option<Flash>>(flash.clone());
        provide_context(pending.clone());
    };
    let render = render_app_async_with_context(provide, move || server_rendered_shell(options.clone()));
    let mut page = app
        .render_limiter
        .run_to_completion(render(Request::from_parts(page_request, Body::empty())))
        .await
        .into_response();
    *page.status_mut() = status;
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_and_the_second_factor_leave_the_form() {
        for (form, rest) in [
            ("a=1&confirm_password=x&a=2", "a=1&a=2"),
            ("confirm_password=x%26y", ""),
            ("a=confirm_password=x&confirm_password", "a=confirm_password=x"),
            ("confirm_code=1&a=1&confirm_credential=%7B%7D&confirm_password=x", "a=1"),
            ("", ""),
        ] {
            assert_eq!(without_proof(&Bytes::from_static(form.as_bytes())), rest.as_bytes());
        }
    }
}
