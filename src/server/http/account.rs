//! `/api/account`: what is the caller's own. Password, API tokens, and browsers that are logged in.

use app::domain::access::Permission;
use app::domain::ids::{SessionId, TokenId};
use app::protocol::access::{ChangePassword, CreateToken, CreatedToken, SessionsPage, TokensPage};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::{Extension, Json};

use super::address::Path;
use super::json::{Created, Json as Body};
use super::limits;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::{Peer, address, caller};
use super::routes::Routes;
use super::ui::forms::access::with_password;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// What it takes to revoke tokens and to end sessions: one's own, or those of others.
pub const ENDS: &[Permission] = &[Permission::AccountManage, Permission::AdminUsers];

/// The routes.
pub fn routes(app: &App) -> Routes {
    let own = Needs::To(Permission::AccountManage);
    Routes::new(app, "Account")
        .post("/account/password", own, CHANGE_PASSWORD, change_password)
        .get("/account/tokens", own, TOKENS, tokens)
        .post("/account/tokens", Needs::ToProved(Permission::AccountManage), CREATE_TOKEN, create_token)
        .delete("/account/tokens/{id}", Needs::OwnTokenOr(ENDS), REVOKE_TOKEN, revoke_token)
        .get("/account/sessions", own, SESSIONS, sessions)
        .delete("/account/sessions/{id}", Needs::AnyOf(ENDS), END_SESSION, end_session)
        .within(|router| limits::bounded(router, limits::API))
}

const CHANGE_PASSWORD: Doc = Doc {
    detail: "The caller's other sessions end.",
    problems: &["wrong_password", "weak_password", "no_accounts", "no_person"],
    ..Doc::of("changePassword", "Changes the caller's password.")
};

async fn change_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    peer: Option<Extension<Peer>>,
    Body(change): Body<ChangePassword>,
) -> Result<Json<Accepted>, ApiError> {
    let changed = app.core.change_password(caller(&person), &person, &change.old, &change.new);
    with_password(&app, &person, address(peer), changed).await?;
    Ok(Json(Accepted { success: true }))
}

const TOKENS: Doc = Doc {
    problems: &["no_accounts", "no_person"],
    ..Doc::of("listTokens", "Lists the caller's API tokens, oldest first.")
};

async fn tokens(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<TokensPage>, ApiError> {
    let user = person.account()?;
    Ok(Json(TokensPage { tokens: app.core.tokens_of(&user).await? }))
}

const CREATE_TOKEN: Doc = Doc {
    detail: "The secret is shown in this answer and never again, so a repeated request cannot be answered with it: \
             the name is what keeps a repetition from making a second one.",
    problems: &[
        "invalid_name",
        "out_of_range",
        "permission_denied",
        "name_taken",
        "limit_reached",
        "no_accounts",
        "no_person",
    ],
    ..Doc::of("createToken", "Makes an API token for the caller.")
};

async fn create_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(create): Body<CreateToken>,
) -> Result<Created<CreatedToken>, ApiError> {
    Ok(Created(app.core.create_token(caller(&person), &person, create).await?))
}

const REVOKE_TOKEN: Doc = Doc {
    detail: "It opens nothing from then on, and sessions that it opened end. A token can revoke itself, whatever its \
             scopes. `admin.users` is for tokens of people who can do no more than the caller.",
    problems: &["permission_denied", "token_not_found", "no_accounts", "no_person"],
    ..Doc::of("revokeToken", "Revokes an API token of the caller's.")
};

async fn revoke_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    let id = TokenId::parse(&id).map_err(|_| ApiError::bad_id("API token"))?;
    app.core.revoke_token(caller(&person), &person, id).await?;
    Ok(Json(Accepted { success: true }))
}

const SESSIONS: Doc = Doc {
    problems: &["no_accounts", "no_person"],
    ..Doc::of("listSessions", "Lists the browsers in which the caller is logged in.")
};

async fn sessions(
    State(app): State<App>,
    Extension(person): Extension<Person>,
) -> Result<Json<SessionsPage>, ApiError> {
    Ok(Json(app.core.sessions_page(&person).await?))
}

const END_SESSION: Doc = Doc {
    detail: "`admin.users` is for sessions of people who can do no more than the caller.",
    problems: &["session_not_found", "no_accounts", "no_person"],
    ..Doc::of("endSession", "Logs a browser of the caller's out.")
};

async fn end_session(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    let id = SessionId::parse(&id).map_err(|_| ApiError::bad_id("session"))?;
    app.core.end_session(caller(&person), &person, id).await?;
    Ok(Json(Accepted { success: true }))
}
