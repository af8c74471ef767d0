//! The dashboard: pages rendered on the server, their forms, and the files of the browser's program.

mod audit_words;
mod backend;
pub mod error_page;
pub mod forms;
mod moved_pages;
pub mod start_methods;
pub mod submit_commands;
mod utc_redirect;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use app::domain::access::Permission;
use app::ui::FRAGMENTS_HEADER;
use app::ui::backend::{SharedBackend, SharedServerPageBackend};
use app::ui::flash::{Flash, FormName};
use app::ui::pending::SecondFactorPrompt;
use app::ui::{App as Dashboard, ServerRenderedApp, login_shell, server_rendered_shell, shell};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use leptos::nonce::use_nonce;
use leptos::prelude::{IntoView, LeptosOptions, provide_context, use_context};
use leptos_axum::{AxumRouteListing, LeptosRoutes, ResponseOptions, generate_route_list};

use self::backend::InProcessBackend;
use super::guards::{self, ExpiredSession};
use super::problem::{ApiError, no_such_route};
use super::routes::{RouteAccess, Routes};
use super::site;
use crate::http::access::account::END_PERMISSIONS;
use crate::http::access::session;
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::limits;
use crate::http::edge::prefs::prefs_from_headers;
use crate::http::edge::request::Peer;
use crate::http::edge::request_headers::cookie;
use crate::http::request_context::current_locale;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

/// The cookie with the ID of the flash message for the next page.
pub const FLASH_COOKIE: &str = "flash";

/// The routes of the dashboard, listed once per process and before the first page is rendered: a page that
/// requests data while routes are listed never finishes
/// (<https://github.com/leptos-rs/leptos/issues/4773>), and tests start many servers.
static PAGE_ROUTES: LazyLock<PageRoutes> = LazyLock::new(|| PageRoutes {
    client_rendered: generate_route_list(Dashboard),
    server_rendered: generate_route_list(ServerRenderedApp),
});

/// The routes of hydrated and of server-rendered pages.
struct PageRoutes {
    client_rendered: Vec<AxumRouteListing>,
    server_rendered: Vec<AxumRouteListing>,
}

/// The scripts that a page may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptPolicy {
    /// The browser's program.
    Bundle,
    /// No files; only inline scripts with a nonce.
    None,
}

/// Returns the routes of pages and forms for signed-in users, and of the sign-in without a session.
pub fn routes(app: &AppState) -> Router<AppState> {
    let (login, server_pages): (Vec<_>, Vec<_>) =
        PAGE_ROUTES.server_rendered.iter().cloned().partition(|route| route.path().starts_with("/login"));
    let guard = || from_fn_with_state(app.clone(), guards::require_page_session);
    let scripts = from_fn_with_state(app.clone(), forms::script_response::respond_to_scripts);
    let forms = form_routes(app).into_router().route_layer(scripts).route_layer(guard());
    let limited = || from_fn_with_state(app.clone(), guards::limit_anonymous);
    let public_forms = login_routes(app).into_router();
    let login = page_routes(app, login, ScriptPolicy::None, login_shell)
        .route_layer(from_fn_with_state(app.clone(), guards::detect_expired_session));
    let routes = page_routes(app, PAGE_ROUTES.client_rendered.clone(), ScriptPolicy::Bundle, shell)
        .merge(page_routes(app, server_pages, ScriptPolicy::Bundle, server_rendered_shell))
        .route_layer(from_fn(utc_redirect::redirect_to_utc))
        .route_layer(guard())
        .merge(login.merge(public_forms).route_layer(limited()))
        .merge(forms);
    limits::limit_body(routes, limits::API).fallback(file_or_not_found)
}

/// Returns the routes of the sign-in.
pub fn login_routes(app: &AppState) -> Routes {
    Routes::new(app, "Login")
        .post("/ui/login", RouteAccess::Anyone, forms::access::LOG_IN, forms::access::log_in)
        .post("/ui/setup", RouteAccess::Anyone, forms::access::SET_UP, forms::access::set_up)
        .form("/ui/login/code", RouteAccess::Anyone, forms::second_step::log_in_with_code)
        .form("/ui/login/passkey", RouteAccess::Anyone, forms::second_step::log_in_with_passkey)
        .form("/ui/login/enrol", RouteAccess::Anyone, forms::second_step::log_in_with_enrollment)
        .form("/ui/preferences", RouteAccess::Anyone, forms::access::set_preferences)
}

/// Returns the routes to which forms and buttons of pages post.
pub fn form_routes(app: &AppState) -> Routes {
    let (manage_workers, manage_users) =
        (Requirement::Permission(Permission::AdminWorkers), Requirement::RecentlyAuthenticated(Permission::AdminUsers));
    let with_recent_auth = Requirement::RecentlyAuthenticated(Permission::AdminWorkers);
    let (manage_account, manage_account_recently) = (
        Requirement::Permission(Permission::AccountManage),
        Requirement::RecentlyAuthenticated(Permission::AccountManage),
    );
    let (submit_jobs, edit_configs) =
        (Requirement::Permission(Permission::JobSubmit), Requirement::Permission(Permission::ConfigEdit));
    forms::empty_routes(app)
        .form("/ui/logout", Requirement::Login, forms::access::log_out)
        .form("/ui/account/password", manage_account, forms::account::change_password)
        .form("/ui/confirm", Requirement::Login, forms::access::confirm)
        .form("/ui/account/tokens", manage_account_recently, forms::account::create_token)
        .form("/ui/account/tokens/{id}/revoke", Requirement::OwnTokenOr(END_PERMISSIONS), forms::account::revoke_token)
        .form("/ui/account/sessions/{id}/end", Requirement::AnyOf(END_PERMISSIONS), forms::account::end_session)
        .form("/ui/account/totp", manage_account_recently, forms::factors::begin_totp)
        .form("/ui/account/totp/confirm", manage_account, forms::factors::confirm_totp)
        .form("/ui/account/totp/remove", manage_account_recently, forms::factors::remove_totp)
        .form("/ui/account/passkeys", manage_account_recently, forms::factors::begin_passkey)
        .form("/ui/account/passkeys/confirm", manage_account, forms::factors::confirm_passkey)
        .form("/ui/account/passkeys/{id}/remove", manage_account_recently, forms::factors::remove_passkey)
        .form("/ui/account/recovery-codes", manage_account_recently, forms::factors::renew_recovery_codes)
        .form("/ui/account/notices/read", manage_account, forms::factors::mark_notices_read)
        .form("/ui/users/{id}/factors/remove", manage_users, forms::factors::remove_user_factors)
        .form("/ui/users", manage_users, forms::users::create)
        .form("/ui/users/{id}", manage_users, forms::users::edit)
        .form("/ui/users/{id}/password", manage_users, forms::users::reset_password)
        .form("/ui/secrets", submit_jobs, forms::secrets::put)
        .form("/ui/secrets/{name}/remove", submit_jobs, forms::secrets::remove)
        .form("/ui/configs", edit_configs, forms::configs::create)
        .form("/ui/configs/{name}", edit_configs, forms::configs::edit)
        .form("/ui/configs/{name}/delete", edit_configs, forms::configs::delete)
        .form("/ui/workers", with_recent_auth, forms::workers::create)
        .merge(forms::bulk::routes(app))
        .form("/ui/workers/{id}/edit", manage_workers, forms::workers::edit)
        .form("/ui/workers/{id}/drain", manage_workers, forms::workers::drain)
        .form("/ui/workers/{id}/resume", manage_workers, forms::workers::resume)
        .form("/ui/workers/{id}/token", with_recent_auth, forms::workers::rotate_token)
        .form("/ui/workers/{id}/settle", manage_workers, forms::workers::resolve_token_conflict)
        .form("/ui/workers/{id}/delete", with_recent_auth, forms::workers::delete)
        .merge(forms::jobs::routes(app))
        .merge(forms::sample_votes::routes(app))
        .merge(forms::saved_views::routes(app))
        .merge(forms::shares::routes(app))
        .layer(|router| router.route_layer(from_fn_with_state(app.clone(), forms::reauth::check_reauth)))
}

fn page_routes<V: IntoView + 'static>(
    app: &AppState,
    routes: Vec<AxumRouteListing>,
    scripts: ScriptPolicy,
    shell: impl Fn(LeptosOptions) -> V + Clone + Send + Sync + 'static,
) -> Router<AppState> {
    let (context, options) = (app.clone(), app.leptos_options.clone());
    Router::new()
        .leptos_routes_with_context(
            app,
            routes,
            move || provide_page_context(&context, scripts),
            move || shell(options.clone()),
        )
        .layer(from_fn_with_state(app.clone(), limit_rendering))
}

async fn limit_rendering(State(app): State<AppState>, request: Request, next: Next) -> Response {
    app.render_limiter.run_to_completion(next.run(request)).await
}

/// Provides the context of a page: preferences, session, backend and flash message.
fn provide_page_context(app: &AppState, scripts: ScriptPolicy) {
    let Some(parts) = use_context::<Parts>() else { return };
    let principal = parts.extensions.get::<Principal>().cloned();
    let mut prefs = prefs_from_headers(&parts.headers, app.services.context.now());
    prefs.version = Some(format!("{}-{}", app.epoch, app.services.context.notifier.version()));
    prefs.unclaimed = app.services.access.authenticator.setup_pending.load(Ordering::Relaxed);
    prefs.session = principal.as_ref().map(|principal| {
        session::session_view(app, principal, Scheme::from_extensions(&parts.extensions), &parts.headers)
    });
    // Fragments are fetched in the background; the message is for the next page that is opened.
    let is_opened = !parts.headers.contains_key(FRAGMENTS_HEADER);
    let flash = cookie(&parts.headers, FLASH_COOKIE).filter(|_| is_opened);
    let flash = flash.and_then(|id| app.flashes.take(id, app.services.context.now()));
    if let Some(response) = use_context::<ResponseOptions>() {
        set_page_headers(&response, scripts, flash.is_some());
    }
    let expired_flash = parts.extensions.get::<ExpiredSession>().map(|ExpiredSession| session_expired_flash());
    let flash = flash.or(expired_flash).map(|flash| flash.for_page(prefs.locale));
    if let (Some(principal), Some(session)) = (principal, prefs.session.clone()) {
        let backend = Arc::new(InProcessBackend::new(app.clone(), principal, session, &prefs));
        provide_context::<SharedBackend>(backend.clone());
        provide_context::<SharedServerPageBackend>(backend);
    }
    if let Some(pending) = parts.extensions.get::<SecondFactorPrompt>() {
        provide_context(pending.clone());
    }
    provide_context(prefs);
    provide_context::<Option<Flash>>(flash);
}

/// Returns the message for users whose session has expired.
fn session_expired_flash() -> Flash {
    let problem = ApiError::not_authenticated().to_problem(current_locale());
    Flash::Problem { form: FormName::Login, problem, fields: BTreeMap::new() }
}

fn set_page_headers(response: &ResponseOptions, scripts: ScriptPolicy, flash_taken: bool) {
    let nonce = use_nonce().map(|nonce| format!(" 'nonce-{nonce}'")).unwrap_or_default();
    let scripts = match scripts {
        ScriptPolicy::Bundle => format!("script-src 'self'{nonce} 'wasm-unsafe-eval'; connect-src 'self'"),
        // Leptos writes an inline script for fetched data, which is empty here.
        ScriptPolicy::None => format!("script-src{nonce}; connect-src 'none'"),
    };
    let policy = format!(
        "default-src 'self'; {scripts}; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    // Pages show the current state, and a token at most once.
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if flash_taken {
        let expired_cookie = HeaderValue::from_static("flash=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        response.append_header(header::SET_COOKIE, expired_cookie);
    }
}

async fn file_or_not_found(State(app): State<AppState>, request: Request) -> Response {
    let is_read_request = matches!(request.method().as_str(), "GET" | "HEAD");
    if is_read_request && let Some(file) = site::serve_file(request.uri().path(), request.headers()) {
        return file;
    }
    if is_read_request && let Some(address) = moved_pages::new_address(request.uri()) {
        return Redirect::permanent(&address).into_response();
    }
    let peer = request.extensions().get::<Peer>().map(|Peer(host)| *host);
    if let Err(error) = app.services.access.check_unauthenticated_rate(peer) {
        return ApiError::from(error).into_response();
    }
    // For a browser, [`error_page`] replaces this document.
    no_such_route(request.uri().path()).into_response()
}
