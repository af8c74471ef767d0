//! Login, logout, and how a browser likes its pages.

use std::net::IpAddr;

use app::domain::audit::flood::Refused;
use app::domain::time::Millis;
use app::ui::flash::{Flash, FormName, Notice};
use app::ui::pending::{CODE_FIELD, CREDENTIAL_FIELD};
use app::ui::prefs::{CHOICES, chosen};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::json;

use super::{Fields, answer, field, refused};
use crate::http::arrival::Scheme;
use crate::http::json::Form;
use crate::http::openapi::doc::{Answer, Content, Doc, LOCATION};
use crate::http::request::{Peer, address, caller, caller_named};
use crate::http::{session, session_cookie};
use crate::service::access::{Browser, DEVICE, LoggedIn, Login, PENDING, Person, Proof, Via};
use crate::service::rates::KnownBrowser;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::state::App;
use crate::text::{local_path, percent_escaped};

/// What was typed is shown again up to this length, in bytes: nothing that fits is longer, and each is kept for a while.
const LONGEST_SHOWN: usize = 1_024;

const ON: &[Answer] = &[Answer {
    headers: &[LOCATION],
    ..Answer::with(
        303,
        "On to the next page, logged in by a cookie; or to the page that takes the code of the second factor, or sets one up; or \
         back, where the page says what was wrong.",
        Content::Nothing,
    )
}];

/// See [`log_in`].
pub const LOG_IN: Doc = Doc {
    body: Some(Content::Form(&[
        ("name", "Who it is; left out, the password is an API token."),
        ("password", "The password, or an API token."),
        ("next", "The page to go on to."),
    ])),
    answers: ON,
    ..Doc::of("logIn", "Logs a browser in, as the form of the login page does.")
};

/// `POST /ui/login`: a name with its password, or an API token without a name.
pub async fn log_in(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let address = address(peer);
    let (browser, by) = (browser(address, scheme, &headers), caller_named("anonymous"));
    // A password may begin or end with a blank.
    let secret = fields.get("password").map_or("", String::as_str);
    let name = field(&fields, "name");
    let opened = match name {
        Some(name) => match app.core.known_browser(name, session_cookie::read_device(&headers, scheme)).await {
            Ok(known) => app.core.one_try(address, Some(name), known, app.core.log_in(by, name, secret, browser)).await,
            Err(refusal) => Err(refusal),
        },
        None => app
            .core
            .one_try(address, None, None, app.core.log_in_with_token(by, secret, browser))
            .await
            .map(Login::Done),
    };
    match opened {
        Ok(login) => onward(scheme, &login, &next),
        Err(refusal) => {
            record(&app, address, name.unwrap_or_default(), &refusal).await;
            let back = format!("/login?next={}", percent_escaped(&next));
            refused(&app, &back, FormName::Login, refusal, shown(&fields, &["name"]))
        }
    }
}

/// See [`set_up`].
pub const SET_UP: Doc = Doc {
    detail: "It works once, with the code that the first start prints.",
    body: Some(Content::Form(&[
        ("code", "The setup code."),
        ("name", "The first admin's name."),
        ("password", "The first admin's password, of 12 characters or more."),
    ])),
    answers: ON,
    ..Doc::of("setUp", "Makes the first admin, as the form of the login page does.")
};

/// `POST /ui/setup`: the setup code, and who the first admin is to be.
pub async fn set_up(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let (code, name) = (field(&fields, "code").unwrap_or_default(), field(&fields, "name").unwrap_or_default());
    let password = fields.get("password").map_or("", String::as_str);
    let address = address(peer);
    let browser = browser(address, scheme, &headers);
    let set_up = app.core.set_up(caller_named("anonymous"), code, name, password, browser);
    match app.core.one_try(address, None, None, set_up).await {
        Ok(login) => onward(scheme, &login, "/"),
        Err(refusal) => {
            record(&app, address, name, &refusal).await;
            refused(&app, "/login", FormName::Login, refusal, shown(&fields, &["name"]))
        }
    }
}

/// `POST /ui/confirm`: the password once more.
pub async fn confirm(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    peer: Option<Extension<Peer>>,
    Form(fields): Form<Fields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let proof = Proof { secret: fields.get("password").cloned().unwrap_or_default(), ..factor_of(&fields) };
    match prove(&app, &person, address(peer), proof).await {
        Ok(()) => answer(&app, &next, Flash::Notice { code: Notice::Confirmed }),
        Err(refusal) => {
            let back = format!("/confirm?next={}", percent_escaped(&next));
            refused(&app, &back, FormName::Password, refusal, Fields::new())
        }
    }
}

/// The second factor that came with a password.
pub fn factor_of(fields: &Fields) -> Proof {
    let given = |name| field(fields, name).map(str::to_owned);
    Proof { secret: String::new(), code: given(CODE_FIELD), credential: given(CREDENTIAL_FIELD) }
}

/// Takes a password once more, and the second factor of whoever has one.
pub async fn prove(app: &App, person: &Person, peer: Option<IpAddr>, proof: Proof) -> Result<(), Refusal> {
    let proved = app.core.prove(caller(person), person, proof);
    let Some(user) = &person.user else { return with_password(app, person, peer, proved).await };
    let known = known(person);
    with_password(app, person, peer, app.core.one_code(user, known, proved)).await
}

/// Whoever has got in is counted for what they came in with, not for their name: others guess that one, too.
fn known(person: &Person) -> Option<KnownBrowser> {
    match &person.via {
        Via::Session(session) => Some(KnownBrowser(session.to_string())),
        Via::Token { id, .. } => Some(KnownBrowser(id.to_string())),
        Via::Loopback | Via::Host => None,
    }
}

/// Something that takes a person's password: a wrong one counts like one at the login.
pub async fn with_password(
    app: &App,
    person: &Person,
    peer: Option<IpAddr>,
    attempt: impl Future<Output = Result<(), Refusal>>,
) -> Result<(), Refusal> {
    let outcome = app.core.one_try(peer, Some(&person.name), known(person), attempt).await;
    if let Err(refusal) = &outcome {
        record(app, peer, &person.name, refusal).await;
    }
    outcome
}

/// `POST /ui/logout`
pub async fn log_out(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    Extension(person): Extension<Person>,
) -> Response {
    if let Err(refusal) = app.core.log_out(caller(&person), &person).await {
        return refused(&app, "/", FormName::Action, refusal, Fields::new());
    }
    let mut response = answer(&app, "/login", Flash::Notice { code: Notice::SignedOut });
    if let Ok(gone) = HeaderValue::from_str(&session_cookie::set(scheme, "", Millis::seconds(0))) {
        response.headers_mut().append(header::SET_COOKIE, gone);
    }
    // Not the cookies: the reader's language stays, and so does what tells a known browser.
    response.headers_mut().insert("clear-site-data", HeaderValue::from_static("\"cache\", \"storage\""));
    response
}

/// Puts a login that was refused on record.
pub(super) async fn record(app: &App, peer: Option<IpAddr>, name: &str, refusal: &Refusal) {
    let reason = match refusal {
        Refusal::WrongToken => "wrong_token",
        Refusal::WrongPassword => "wrong_password",
        Refusal::Factor(FactorRefusal::WrongCode) => "wrong_code",
        Refusal::Factor(FactorRefusal::WrongPasskey) => "wrong_passkey",
        Refusal::Factor(FactorRefusal::PasskeyCopied) => "passkey_copied",
        Refusal::TooMany { .. } => "too_many_requests",
        _ => return,
    };
    let by = caller_named("unknown");
    // What was typed into the wrong field must not be kept: it may be a password.
    let name = if app.core.is_somebody(name).await { name } else { "" };
    app.core.record_refused(by, Refused::Login, peer, name, json!({"reason": reason})).await;
}

/// To the next page, logged in; or to the next step of the login.
fn onward(scheme: Scheme, login: &Login, next: &str) -> Response {
    let (step, cookie) = match login {
        Login::Done(opened) => return welcome(Redirect::to(next).into_response(), scheme, opened),
        Login::Factor(cookie) => ("code", cookie),
        Login::Enrolment(cookie) => ("enrol", cookie),
    };
    let to = Redirect::to(&format!("/login/{step}?next={}", percent_escaped(next)));
    with_cookies(to.into_response(), &[session_cookie::set_pending(scheme, cookie, PENDING)])
}

/// The same answer, for a browser that is logged in from now on.
pub(super) fn welcome(response: Response, scheme: Scheme, opened: &LoggedIn) -> Response {
    let session = session_cookie::set(scheme, &opened.cookie, opened.longest);
    let device = session_cookie::set_device(scheme, &opened.device, DEVICE);
    with_cookies(response, &[session, device])
}

/// The same answer with these cookies.
pub(super) fn with_cookies<const N: usize>(mut response: Response, cookies: &[String; N]) -> Response {
    for value in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// The browser that sent a form.
pub(super) fn browser(host: Option<IpAddr>, scheme: Scheme, headers: &HeaderMap) -> Browser {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    Browser {
        host: host.map(|host| host.to_string()).unwrap_or_default(),
        agent: agent.to_owned(),
        session: session_cookie::read(headers, scheme).map(str::to_owned),
        device: session_cookie::read_device(headers, scheme).map(str::to_owned),
        origin: session::origin(scheme, headers).ok(),
    }
}

/// Those fields that may be shown again: no secret.
pub(super) fn shown(fields: &Fields, names: &[&str]) -> Fields {
    let short = |value: &&String| value.len() <= LONGEST_SHOWN;
    let field = |name: &&str| Some(((*name).to_owned(), fields.get(*name).filter(short)?.clone()));
    names.iter().filter_map(field).collect()
}

/// `POST /ui/preferences`: what a browser is to remember for a year. What the form leaves out stays as it is.
pub async fn prefer(Form(fields): Form<Fields>) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/"));
    let mut response = Redirect::to(next).into_response();
    for name in CHOICES {
        let Some(choice) = field(&fields, name).and_then(|word| chosen(name, word)) else { continue };
        let cookie = format!("{name}={choice}; Path=/; Max-Age=31536000; SameSite=Lax");
        if let Ok(value) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    response
}
