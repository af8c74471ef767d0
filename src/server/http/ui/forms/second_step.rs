//! The login's second step.

use std::net::IpAddr;

use app::domain::time::Millis;
use app::protocol::factors::RecoveryCodes;
use app::ui::flash::{Flash, FormName};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};

use super::access::{browser, record, welcome, with_cookies};
use super::{Fields, answer, field, refused};
use crate::http::arrival::Scheme;
use crate::http::json::Form;
use crate::http::request::{Peer, address, caller_named};
use crate::http::session_cookie;
use crate::service::access::{LoggedIn, PendingLogin};
use crate::service::rates::KnownBrowser;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::state::App;
use crate::text::{local_path, percent_escaped};

const ACCOUNT: &str = "/account";

/// A form of the login's second step, and who sent it.
struct Step {
    pending: PendingLogin,
    known: Option<KnownBrowser>,
    peer: Option<IpAddr>,
}

impl Step {
    async fn of(app: &App, scheme: Scheme, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Self, Refusal> {
        let cookie = session_cookie::read_pending(headers, scheme).ok_or(Refusal::Nobody)?;
        let pending = app.core.pending_login(cookie).await?.ok_or(Refusal::Nobody)?;
        let device = session_cookie::read_device(headers, scheme);
        let known = app.core.known_browser(&pending.user.name, device).await?;
        Ok(Self { pending, known, peer })
    }

    /// Tries a second factor: wrong ones are counted, and what is refused is recorded.
    async fn try_factor<F>(self, app: &App, attempt: impl FnOnce(PendingLogin) -> F) -> Result<LoggedIn, Refusal>
    where
        F: Future<Output = Result<LoggedIn, Refusal>>,
    {
        let Self { pending, known, peer } = self;
        let (id, name) = (pending.user.id.clone(), pending.user.name.clone());
        let outcome = app.core.one_code(&id, known, attempt(pending)).await;
        if let Err(refusal) = &outcome {
            record(app, peer, &name, refusal).await;
        }
        outcome
    }
}

/// `POST /ui/login/code`: a code of the app, or a recovery code.
pub async fn log_in_with_code(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let tried = async {
        let step = Step::of(&app, scheme, &headers, address(peer)).await?;
        let (by, browser) = (caller_named("anonymous"), browser(step.peer, scheme, &headers));
        let code = fields.get("code").map_or("", String::as_str);
        step.try_factor(&app, |pending| app.core.log_in_with_code(by, pending, code, browser)).await
    };
    onward(&app, scheme, &fields, tried.await)
}

/// `POST /ui/login/passkey`: what a passkey has signed.
pub async fn log_in_with_passkey(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let tried = async {
        let step = Step::of(&app, scheme, &headers, address(peer)).await?;
        let cookie = session_cookie::read_pending(&headers, scheme).ok_or(Refusal::Nobody)?;
        let (by, browser) = (caller_named("anonymous"), browser(step.peer, scheme, &headers));
        let credential = fields.get("credential").map_or("", String::as_str);
        let log_in = |pending| app.core.log_in_with_passkey(by, pending, cookie, credential, browser);
        step.try_factor(&app, log_in).await
    };
    onward(&app, scheme, &fields, tried.await)
}

/// `POST /ui/login/enrol`: the first code of an app that is set up at the login.
pub async fn log_in_by_enrolling(
    State(app): State<App>,
    Extension(scheme): Extension<Scheme>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    let next = local_path(field(&fields, "next").unwrap_or("/")).to_owned();
    let tried = async {
        let Step { pending, peer, .. } = Step::of(&app, scheme, &headers, address(peer)).await?;
        let (by, browser) = (caller_named("anonymous"), browser(peer, scheme, &headers));
        let code = fields.get("code").map_or("", String::as_str);
        app.core.log_in_by_enrolling(by, pending, code, browser).await
    };
    match tried.await {
        // The codes are shown where they are managed.
        Ok((opened, codes)) => {
            let shown = answer(&app, ACCOUNT, Flash::RecoveryCodes(RecoveryCodes { recovery_codes: codes }));
            done(shown, scheme, &opened)
        }
        Err(refusal) => again(&app, "enrol", &next, refusal),
    }
}

/// On to the page that was asked for, or back to the step.
fn onward(app: &App, scheme: Scheme, fields: &Fields, outcome: Result<LoggedIn, Refusal>) -> Response {
    let next = local_path(field(fields, "next").unwrap_or("/"));
    match outcome {
        Ok(opened) => done(Redirect::to(next).into_response(), scheme, &opened),
        Err(refusal) => again(app, "code", next, refusal),
    }
}

/// Logged in: the proof of the password has served.
fn done(response: Response, scheme: Scheme, opened: &LoggedIn) -> Response {
    let gone = session_cookie::set_pending(scheme, "", Millis::seconds(0));
    with_cookies(welcome(response, scheme, opened), &[gone])
}

/// Back to the step; who has waited too long begins anew.
fn again(app: &App, step: &str, next: &str, refusal: Refusal) -> Response {
    let over = matches!(refusal, Refusal::Nobody | Refusal::WrongPassword | Refusal::Factor(FactorRefusal::Exists));
    let page = if over { "/login".to_owned() } else { format!("/login/{step}") };
    refused(app, &format!("{page}?next={}", percent_escaped(next)), FormName::Login, refusal, Fields::new())
}
