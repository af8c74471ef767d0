//! The dashboard: pages rendered on the server, the forms they post, and the browser's half of them.

pub mod commands;
pub mod forms;
pub mod making;
mod port;
pub mod trouble;
pub mod ways;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use app::domain::access::Permission;
use app::domain::time::Timestamp;
use app::protocol::status::BulkAction;
use app::ui::PARTS_HEADER;
use app::ui::flash::{Flash, FormName};
use app::ui::pending::PendingLogin;
use app::ui::port::{SharedDesk, SharedPort};
use app::ui::prefs::Prefs;
use app::ui::{App as Dashboard, Plain, login_shell, plain_shell, shell};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use leptos::nonce::use_nonce;
use leptos::prelude::{IntoView, LeptosOptions, provide_context, use_context};
use leptos_axum::{AxumRouteListing, LeptosRoutes, ResponseOptions, generate_route_list};

use self::port::ServerPort;
use super::access::{self, SessionOver};
use super::account::ENDS;
use super::arrival::Scheme;
use super::headers::cookie;
use super::problem::{ApiError, no_such_route};
use super::request::Peer;
use super::routes::{Access, Routes};
use super::{limits, session, site};
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The cookie that names what the next page says once.
pub const FLASH_COOKIE: &str = "flash";

/// The dashboard's addresses, listed once per process and before the first page is rendered: a page whose data is asked
/// for while a list is made never ends (<https://github.com/leptos-rs/leptos/issues/4773>), and tests start many servers.
static LISTED: LazyLock<Listed> =
    LazyLock::new(|| Listed { live: generate_route_list(Dashboard), plain: generate_route_list(Plain) });

/// Addresses: of pages that live in the browser, and of plain ones.
struct Listed {
    live: Vec<AxumRouteListing>,
    plain: Vec<AxumRouteListing>,
}

/// What may run on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scripts {
    /// The browser's half.
    Own,
    /// Nothing.
    None,
}

/// Pages behind their guard, the login page before it, and forms.
pub fn routes(app: &App) -> Router<App> {
    let (login, plain): (Vec<_>, Vec<_>) =
        LISTED.plain.iter().cloned().partition(|route| route.path().starts_with("/login"));
    let guard = || from_fn_with_state(app.clone(), access::page);
    let forms = forms(app).into_router().route_layer(guard());
    let strangers = || from_fn_with_state(app.clone(), access::stranger);
    let open = entrances(app).into_router();
    let login =
        rendered(app, login, Scripts::None, login_shell).route_layer(from_fn_with_state(app.clone(), access::login));
    let routes = rendered(app, LISTED.live.clone(), Scripts::Own, shell)
        .merge(rendered(app, plain, Scripts::Own, plain_shell))
        .route_layer(guard())
        .merge(login.merge(open).route_layer(strangers()))
        .merge(forms);
    limits::bounded(routes, limits::API).fallback(file_or_not_found)
}

/// How browsers get in.
pub fn entrances(app: &App) -> Routes {
    Routes::new(app, "Login")
        .post("/ui/login", Access::Anyone, forms::access::LOG_IN, forms::access::log_in)
        .post("/ui/setup", Access::Anyone, forms::access::SET_UP, forms::access::set_up)
        .form("/ui/login/code", Access::Anyone, forms::second_step::log_in_with_code)
        .form("/ui/login/passkey", Access::Anyone, forms::second_step::log_in_with_passkey)
        .form("/ui/login/enrol", Access::Anyone, forms::second_step::log_in_by_enrolling)
        .form("/ui/preferences", Access::Anyone, forms::access::prefer)
}

/// What a page's buttons and forms post to.
pub fn forms(app: &App) -> Routes {
    let (workers, people) = (Needs::To(Permission::AdminWorkers), Needs::ToProved(Permission::AdminUsers));
    let taking = Needs::ToProved(Permission::AdminWorkers);
    let (own, own_proved) = (Needs::To(Permission::AccountManage), Needs::ToProved(Permission::AccountManage));
    let (submits, edits) = (Needs::To(Permission::JobSubmit), Needs::To(Permission::ConfigEdit));
    Routes::new(app, "Login")
        .form("/ui/logout", Needs::Login, forms::access::log_out)
        .form("/ui/account/password", own, forms::account::change_password)
        .form("/ui/confirm", Needs::Login, forms::access::confirm)
        .form("/ui/account/tokens", own_proved, forms::account::create_token)
        .form("/ui/account/tokens/{id}/revoke", Needs::OwnTokenOr(ENDS), forms::account::revoke_token)
        .form("/ui/account/sessions/{id}/end", Needs::AnyOf(ENDS), forms::account::end_session)
        .form("/ui/account/totp", own_proved, forms::factors::begin)
        .form("/ui/account/totp/confirm", own, forms::factors::confirm)
        .form("/ui/account/totp/remove", own_proved, forms::factors::remove)
        .form("/ui/account/passkeys", own_proved, forms::factors::begin_passkey)
        .form("/ui/account/passkeys/confirm", own, forms::factors::confirm_passkey)
        .form("/ui/account/passkeys/{id}/remove", own_proved, forms::factors::remove_passkey)
        .form("/ui/account/recovery-codes", own_proved, forms::factors::renew)
        .form("/ui/account/notices/read", own, forms::factors::read_notices)
        .form("/ui/users/{id}/factors/remove", people, forms::factors::remove_of)
        .form("/ui/users", people, forms::people::add)
        .form("/ui/users/{id}", people, forms::people::edit)
        .form("/ui/users/{id}/password", people, forms::people::reset_password)
        .form("/ui/secrets", submits, forms::secrets::keep)
        .form("/ui/secrets/{name}/remove", submits, forms::secrets::remove)
        .form("/ui/configs", edits, forms::configs::create)
        .form("/ui/configs/{name}", edits, forms::configs::edit)
        .form("/ui/workers", taking, forms::workers::create)
        .form("/ui/workers/bulk/drain", workers, forms::bulk::of(BulkAction::Drain))
        .form("/ui/workers/bulk/resume", workers, forms::bulk::of(BulkAction::Resume))
        .form("/ui/workers/bulk/delete", taking, forms::bulk::of(BulkAction::Delete))
        .form("/ui/workers/{id}/edit", workers, forms::workers::edit)
        .form("/ui/workers/{id}/drain", workers, forms::workers::drain)
        .form("/ui/workers/{id}/resume", workers, forms::workers::resume)
        .form("/ui/workers/{id}/token", taking, forms::workers::rotate)
        .form("/ui/workers/{id}/settle", workers, forms::workers::settle)
        .form("/ui/workers/{id}/delete", taking, forms::workers::delete)
        .form("/ui/jobs", submits, forms::jobs::submit)
        .form("/ui/jobs/bulk/cancel", Needs::CancelJob, forms::bulk::of(BulkAction::Cancel))
        .form("/ui/jobs/bulk/retry", Needs::SeeJobAnd(Permission::JobSubmit), forms::bulk::of(BulkAction::Retry))
        .form("/ui/jobs/{id}/cancel", Needs::CancelJob, forms::jobs::cancel)
        .form("/ui/jobs/{id}/retry", Needs::SeeJobAnd(Permission::JobSubmit), forms::jobs::retry)
        .form("/ui/jobs/{id}/priority", Needs::SeeJobAnd(Permission::QueueManage), forms::jobs::prioritise)
        .within(|router| router.route_layer(from_fn_with_state(app.clone(), forms::proof::in_place)))
}

fn rendered<V: IntoView + 'static>(
    app: &App,
    routes: Vec<AxumRouteListing>,
    scripts: Scripts,
    shell: impl Fn(LeptosOptions) -> V + Clone + Send + Sync + 'static,
) -> Router<App> {
    let (context, options) = (app.clone(), app.leptos.clone());
    Router::new()
        .leptos_routes_with_context(app, routes, move || provide(&context, scripts), move || shell(options.clone()))
        .layer(from_fn_with_state(app.clone(), made_whole))
}

async fn made_whole(State(app): State<App>, request: Request, next: Next) -> Response {
    app.making.whole(next.run(request)).await
}

/// What a page is given: who reads, how, and whom to ask.
fn provide(app: &App, scripts: Scripts) {
    let Some(parts) = use_context::<Parts>() else { return };
    let person = parts.extensions.get::<Person>().cloned();
    let mut prefs = prefs(&parts.headers, app.core.now());
    prefs.version = Some(format!("{}-{}", app.epoch, app.core.hub.version()));
    prefs.unclaimed = app.core.doors.unclaimed.load(Ordering::Relaxed);
    prefs.session =
        person.as_ref().map(|person| session::view(app, person, Scheme::of(&parts.extensions), &parts.headers));
    // Parts are fetched in the background: what is said once is for the page that is opened next.
    let is_opened = !parts.headers.contains_key(PARTS_HEADER);
    let flash = cookie(&parts.headers, FLASH_COOKIE).filter(|_| is_opened);
    let flash = flash.and_then(|id| app.flashes.take(id, app.core.now()));
    if let Some(response) = use_context::<ResponseOptions>() {
        set_headers(&response, scripts, flash.is_some());
    }
    let over = parts.extensions.get::<SessionOver>().map(|SessionOver| session_over());
    let flash = flash.or(over).map(|flash| flash.told(prefs.locale));
    if let (Some(person), Some(session)) = (person, prefs.session.clone()) {
        let port = Arc::new(ServerPort::new(app.clone(), person, session, prefs.locale));
        provide_context::<SharedPort>(port.clone());
        provide_context::<SharedDesk>(port);
    }
    if let Some(pending) = parts.extensions.get::<PendingLogin>() {
        provide_context(pending.clone());
    }
    provide_context(prefs);
    provide_context::<Option<Flash>>(flash);
}

/// Why whoever was logged in is asked to log in.
fn session_over() -> Flash {
    let problem = ApiError::not_authenticated().problem();
    Flash::Problem { form: FormName::Login, problem, fields: BTreeMap::new() }
}

/// How a browser likes its pages.
pub fn prefs(headers: &HeaderMap, now: Timestamp) -> Prefs {
    let said = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Prefs::from_headers(said(header::COOKIE), said(header::ACCEPT_LANGUAGE), now)
}

fn set_headers(response: &ResponseOptions, scripts: Scripts, flash_taken: bool) {
    let nonce = use_nonce().map(|nonce| format!(" 'nonce-{nonce}'")).unwrap_or_default();
    let scripts = match scripts {
        Scripts::Own => format!("script-src 'self'{nonce} 'wasm-unsafe-eval'; connect-src 'self'"),
        // Leptos leaves what it fetched in a script, which nothing reads.
        Scripts::None => format!("script-src{nonce}; connect-src 'none'"),
    };
    let policy = format!(
        "default-src 'self'; {scripts}; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    // Pages show what is true now, and a token at most once.
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if flash_taken {
        let gone = HeaderValue::from_static("flash=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        response.append_header(header::SET_COOKIE, gone);
    }
}

async fn file_or_not_found(State(app): State<App>, request: Request) -> Response {
    let known = matches!(request.method().as_str(), "GET" | "HEAD");
    if known && let Some(file) = site::file(request.uri().path(), request.headers()) {
        return file;
    }
    let peer = request.extensions().get::<Peer>().map(|Peer(host)| *host);
    if let Err(refusal) = app.core.stranger_may_ask(peer) {
        return ApiError::from(refusal).into_response();
    }
    // To a browser it is told on a page ([`trouble`]).
    no_such_route(request.uri().path()).into_response()
}
