//! Sign-in, sign-out, confirmation of the password, and preferences.

use std::net::IpAddr;

use app::domain::time::Millis;
use app::ui::flash::{Flash, FlashNotice, FormName};
use app::ui::pending::{CODE_FIELD, CREDENTIAL_FIELD};
use app::ui::prefs::{PREFERENCE_COOKIES, parse_choice, preference_cookie};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::access::password_attempts::{reauthenticate, record_failed_login};
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::json::Form;
use crate::http::edge::request::{Peer, caller_from_actor, caller_from_principal, peer_ip};
use crate::http::edge::server_address::passkey_origin;
use crate::http::guards::session_cookie;
use crate::http::operation::doc::{ContentDoc, LOCATION_HEADER, OperationDoc, ResponseDoc};
use crate::http::state::AppState;
use crate::service::access::{
    BrowserInfo, DEVICE_LIFETIME, LoginOutcome, NewSession, PENDING_LOGIN_LIFETIME, Principal, ReauthProof,
};
use crate::text::{local_path, percent_escaped};

/// The maximum length in bytes of a value that a rejected form shows again: valid values are not longer,
/// and each is stored for a while.
const MAX_ECHO_BYTES: usize = 1_024;

const LOGIN_RESPONSES: &[ResponseDoc] = &[ResponseDoc {
    headers: &[LOCATION_HEADER],
    ..ResponseDoc::new(
        303,
        "Redirects to the next page with a session cookie; or to the page that asks for the second factor or sets one \
         up; or back to the form, which shows the error.",
        ContentDoc::Empty,
    )
}];

/// Describes [`log_in`].
pub const LOG_IN: OperationDoc = OperationDoc {
    body: Some(ContentDoc::Form(&[
        ("name", "The user name; without it, the password is an API token."),
        ("password", "The password, or an API token."),
        ("next", "The page to open after the sign-in."),
    ])),
    responses: LOGIN_RESPONSES,
    ..OperationDoc::new("logIn", "Signs in a browser, as the form of the sign-in page does.")
};

/// `POST /ui/login`: signs in with a name and password, or with an API token and no name.
pub async fn log_in(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<FormFields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let address = peer_ip(peer);
    let (browser, caller) = (browser_from_request(address, scheme, &headers), caller_from_actor("anonymous"));
    // A password may begin or end with spaces.
    let secret = fields.get("password").map_or("", String::as_str);
    let name = field(&fields, "name");
    let result = match name {
        Some(name) => {
            match app.services.access.known_browser(name, session_cookie::read_device(&headers, scheme)).await {
                Ok(known) => {
                    app.services
                        .access
                        .try_password(
                            address,
                            Some(name),
                            known,
                            app.services.access.log_in(caller, name, secret, browser),
                        )
                        .await
                }
                Err(error) => Err(error),
            }
        }
        None => app
            .services
            .access
            .try_password(address, None, None, app.services.access.log_in_with_token(caller, secret, browser))
            .await
            .map(LoginOutcome::LoggedIn),
    };
    match result {
        Ok(login) => redirect_after_login(scheme, &login, &next),
        Err(error) => {
            record_failed_login(&app, address, name.unwrap_or_default(), &error).await;
            let form_url = format!("/login?next={}", percent_escaped(&next));
            redirect_with_problem(&app, &form_url, FormName::Login, error, echo_fields(&fields, &["name"]))
        }
    }
}

/// Describes [`set_up`].
pub const SET_UP: OperationDoc = OperationDoc {
    description: "It works once, with the code that the first start prints.",
    body: Some(ContentDoc::Form(&[
        ("code", "The setup code."),
        ("name", "The first admin's name."),
        ("password", "The first admin's password, of 12 characters or more."),
    ])),
    responses: LOGIN_RESPONSES,
    ..OperationDoc::new("setUp", "Creates the first admin, as the form of the sign-in page does.")
};

/// `POST /ui/setup`: creates the first admin with the setup code.
pub async fn set_up(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<FormFields>,
) -> Response {
    let (code, name) = (field(&fields, "code").unwrap_or_default(), field(&fields, "name").unwrap_or_default());
    let password = fields.get("password").map_or("", String::as_str);
    let address = peer_ip(peer);
    let browser = browser_from_request(address, scheme, &headers);
    let set_up = app.services.access.create_first_admin(caller_from_actor("anonymous"), code, name, password, browser);
    match app.services.access.try_password(address, None, None, set_up).await {
        Ok(login) => redirect_after_login(scheme, &login, "/"),
        Err(error) => {
            record_failed_login(&app, address, name, &error).await;
            redirect_with_problem(&app, "/login", FormName::Login, error, echo_fields(&fields, &["name"]))
        }
    }
}

/// `POST /ui/confirm`: confirms the password.
pub async fn confirm(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    peer: Option<Extension<Peer>>,
    Form(fields): Form<FormFields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let proof =
        ReauthProof { secret: fields.get("password").cloned().unwrap_or_default(), ..second_factor_from(&fields) };
    match reauthenticate(&app, &principal, peer_ip(peer), proof).await {
        Ok(()) => redirect_with_flash(&app, &next, Flash::Notice { code: FlashNotice::Confirmed }),
        Err(error) => {
            let form_url = format!("/confirm?next={}", percent_escaped(&next));
            redirect_with_problem(&app, &form_url, FormName::Password, error, FormFields::new())
        }
    }
}

/// Returns the second factor that was submitted with a password.
pub fn second_factor_from(fields: &FormFields) -> ReauthProof {
    let value = |name| field(fields, name).map(str::to_owned);
    ReauthProof { secret: String::new(), code: value(CODE_FIELD), credential: value(CREDENTIAL_FIELD) }
}

/// `POST /ui/logout`
pub async fn log_out(
    State(app): State<AppState>,
    Extension(scheme): Extension<Scheme>,
    Extension(principal): Extension<Principal>,
) -> Response {
    if let Err(error) = app.services.access.log_out(caller_from_principal(&principal), &principal).await {
        return redirect_with_problem(&app, "/", FormName::Action, error, FormFields::new());
    }
    let mut response = redirect_with_flash(&app, "/login", Flash::Notice { code: FlashNotice::SignedOut });
    if let Ok(expired_cookie) = HeaderValue::from_str(&session_cookie::set_session(scheme, "", Millis::from_secs(0))) {
        response.headers_mut().append(header::SET_COOKIE, expired_cookie);
    }
    // Cookies remain, because they contain the preferences and identify a known browser.
    response.headers_mut().insert("clear-site-data", HeaderValue::from_static("\"cache\", \"storage\""));
    response
}

/// Redirects to the next page with a session, or to the next step of the sign-in.
fn redirect_after_login(scheme: Scheme, login: &LoginOutcome, next: &str) -> Response {
    let (step, cookie) = match login {
        LoginOutcome::LoggedIn(session) => {
            return with_session_cookies(Redirect::to(next).into_response(), scheme, session);
        }
        LoginOutcome::FactorRequired(cookie) => ("code", cookie),
        LoginOutcome::EnrollmentRequired(cookie) => ("enrol", cookie),
    };
    let to = Redirect::to(&format!("/login/{step}?next={}", percent_escaped(next)));
    with_cookies(to.into_response(), &[session_cookie::set_pending(scheme, cookie, PENDING_LOGIN_LIFETIME)])
}

/// Adds the cookies of a new session.
pub(super) fn with_session_cookies(response: Response, scheme: Scheme, new_session: &NewSession) -> Response {
    let session = session_cookie::set_session(scheme, &new_session.cookie, new_session.max_age);
    let device = session_cookie::set_device(scheme, &new_session.device, DEVICE_LIFETIME);
    with_cookies(response, &[session, device])
}

/// Adds these cookies.
pub(super) fn with_cookies<const N: usize>(mut response: Response, cookies: &[String; N]) -> Response {
    for value in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// Describes the browser that sent a form.
pub(super) fn browser_from_request(host: Option<IpAddr>, scheme: Scheme, headers: &HeaderMap) -> BrowserInfo {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    BrowserInfo {
        host: host.map(|host| host.to_string()).unwrap_or_default(),
        user_agent: agent.to_owned(),
        session: session_cookie::read_session(headers, scheme).map(str::to_owned),
        device: session_cookie::read_device(headers, scheme).map(str::to_owned),
        origin: passkey_origin(scheme, headers).ok(),
    }
}

/// Returns the named fields, which must not be secrets, to fill the form again.
pub(super) fn echo_fields(fields: &FormFields, names: &[&str]) -> FormFields {
    let short = |value: &&String| value.len() <= MAX_ECHO_BYTES;
    let field = |name: &&str| Some(((*name).to_owned(), fields.get(*name).filter(short)?.clone()));
    names.iter().filter_map(field).collect()
}

/// `POST /ui/preferences`: stores preferences for a year. Omitted fields remain unchanged.
pub async fn set_preferences(Form(fields): Form<FormFields>) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/"));
    let mut response = Redirect::to(next).into_response();
    for name in PREFERENCE_COOKIES {
        let Some(choice) = field(&fields, name).and_then(|value| parse_choice(name, value)) else { continue };
        if let Ok(value) = HeaderValue::from_str(&preference_cookie(name, choice)) {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    response
}
