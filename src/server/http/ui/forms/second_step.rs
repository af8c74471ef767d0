//! The second step of the sign-in.

use std::net::IpAddr;

use app::domain::time::Millis;
use app::protocol::access::factors::RecoveryCodes;
use app::ui::flash::{Flash, FormName};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};

use super::access::{browser_from_request, with_cookies, with_session_cookies};
use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::access::password_attempts::record_failed_login;
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::json::Form;
use crate::http::edge::request::{Peer, caller_from_actor, peer_ip};
use crate::http::guards::session_cookie;
use crate::http::state::AppState;
use crate::service::access::rate_limits::KnownBrowser;
use crate::service::access::{NewSession, PendingLogin};
use crate::service::error::{FactorError, ServiceError};
use crate::text::{local_path, percent_escaped};

const ACCOUNT: &str = "/account";

/// The state of a form of the second step.
struct LoginStep {
    pending: PendingLogin,
    known_browser: Option<KnownBrowser>,
    peer: Option<IpAddr>,
}

impl LoginStep {
    async fn load(
        app: &AppState,
        scheme: Scheme,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Self, ServiceError> {
        let cookie = session_cookie::read_pending(headers, scheme).ok_or(ServiceError::NotAuthenticated)?;
        let pending = app.services.access.pending_login(cookie).await?.ok_or(ServiceError::NotAuthenticated)?;
        let device = session_cookie::read_device(headers, scheme);
        let known = app.services.access.known_browser(&pending.user.name, device).await?;
        Ok(Self { pending, known_browser: known, peer })
    }

    /// Tries a second factor; counts wrong ones and records rejections.
    async fn try_factor<F>(
        self,
        app: &AppState,
        attempt: impl FnOnce(PendingLogin) -> F,
    ) -> Result<NewSession, ServiceError>
    where
        F: Future<Output = Result<NewSession, ServiceError>>,
    {
        let Self { pending, known_browser: known, peer } = self;
        let (id, name) = (pending.user.id.clone(), pending.user.name.clone());
        let outcome = app.services.access.try_code(&id, known, attempt(pending)).await;
        if let Err(error) = &outcome {
            record_failed_login(app, peer, &name, error).await;
        }
        outcome
    }
}

/// `POST /ui/login/code`: a code of an authenticator app, or a recovery code.
pub async fn log_in_with_code(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<FormFields>,
) -> Response {
    let login = async {
        let step = LoginStep::load(&app, scheme, &headers, peer_ip(peer)).await?;
        let (caller, browser) = (caller_from_actor("anonymous"), browser_from_request(step.peer, scheme, &headers));
        let code = fields.get("code").map_or("", String::as_str);
        step.try_factor(&app, |pending| app.services.access.log_in_with_code(caller, pending, code, browser)).await
    };
    redirect_after_step(&app, scheme, &fields, login.await)
}

/// `POST /ui/login/passkey`: the response of a passkey.
pub async fn log_in_with_passkey(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<FormFields>,
) -> Response {
    let login = async {
        let step = LoginStep::load(&app, scheme, &headers, peer_ip(peer)).await?;
        let cookie = session_cookie::read_pending(&headers, scheme).ok_or(ServiceError::NotAuthenticated)?;
        let (caller, browser) = (caller_from_actor("anonymous"), browser_from_request(step.peer, scheme, &headers));
        let credential = fields.get("credential").map_or("", String::as_str);
        let log_in = |pending| app.services.access.log_in_with_passkey(caller, pending, cookie, credential, browser);
        step.try_factor(&app, log_in).await
    };
    redirect_after_step(&app, scheme, &fields, login.await)
}

/// `POST /ui/login/enrol`: the first code of an authenticator app that is set up during the sign-in.
pub async fn log_in_with_enrollment(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<FormFields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let login = async {
        let LoginStep { pending, peer, .. } = LoginStep::load(&app, scheme, &headers, peer_ip(peer)).await?;
        let (caller, browser) = (caller_from_actor("anonymous"), browser_from_request(peer, scheme, &headers));
        let code = fields.get("code").map_or("", String::as_str);
        app.services.access.log_in_with_enrollment(caller, pending, code, browser).await
    };
    match login.await {
        // The account page shows the recovery codes, because they are managed there.
        Ok((session, codes)) => {
            let response =
                redirect_with_flash(&app, ACCOUNT, Flash::RecoveryCodes(RecoveryCodes { recovery_codes: codes }));
            complete_login(response, scheme, &session)
        }
        Err(error) => redirect_to_step(&app, "enrol", &next, error),
    }
}

/// Redirects to the requested page, or back to the step after an error.
fn redirect_after_step(
    app: &AppState,
    scheme: Scheme,
    fields: &FormFields,
    outcome: Result<NewSession, ServiceError>,
) -> Response {
    let next = local_path(field(fields, "next").unwrap_or("/"));
    match outcome {
        Ok(session) => complete_login(Redirect::to(next).into_response(), scheme, &session),
        Err(error) => redirect_to_step(app, "code", next, error),
    }
}

/// Adds the session to the response, and deletes the cookie of the sign-in.
fn complete_login(response: Response, scheme: Scheme, session: &NewSession) -> Response {
    let expired_cookie = session_cookie::set_pending(scheme, "", Millis::from_secs(0));
    with_cookies(with_session_cookies(response, scheme, session), &[expired_cookie])
}

/// Redirects to the step, or to the start of the sign-in if it has expired.
fn redirect_to_step(app: &AppState, step: &str, next: &str, error: ServiceError) -> Response {
    let is_expired = matches!(
        error,
        ServiceError::NotAuthenticated | ServiceError::WrongPassword | ServiceError::Factor(FactorError::AlreadyExists)
    );
    let page = if is_expired { "/login".to_owned() } else { format!("/login/{step}") };
    redirect_with_problem(
        app,
        &format!("{page}?next={}", percent_escaped(next)),
        FormName::Login,
        error,
        FormFields::new(),
    )
}
