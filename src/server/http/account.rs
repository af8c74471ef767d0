//! `/api/account`: what is the caller's own. Password, API tokens, and browsers that are logged in.

use app::domain::ids::{SessionId, TokenId};
use app::protocol::access::{ChangePassword, CreateToken, CreatedToken, SessionsPage, TokensPage};
use app::protocol::worker::Accepted;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};

use super::json::Json as Body;
use super::limits;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app)
        .post("/account/password", Needs::Login, change_password)
        .get("/account/tokens", Needs::Login, tokens)
        .post("/account/tokens", Needs::Login, create_token)
        .delete("/account/tokens/{id}", Needs::Login, revoke_token)
        .get("/account/sessions", Needs::Login, sessions)
        .delete("/account/sessions/{id}", Needs::Login, end_session)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::API)))
}

async fn change_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(change): Body<ChangePassword>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.change_password(caller(&person), &person, &change.old, &change.new).await?;
    Ok(Json(Accepted { success: true }))
}

async fn tokens(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<TokensPage>, ApiError> {
    let user = person.account()?;
    Ok(Json(TokensPage { tokens: app.core.tokens_of(&user).await? }))
}

async fn create_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(create): Body<CreateToken>,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    Ok((StatusCode::CREATED, Json(app.core.create_token(caller(&person), &person, create).await?)))
}

async fn revoke_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    let id = TokenId::parse(&id).map_err(|_| ApiError::bad_id("API token"))?;
    app.core.revoke_token(caller(&person), &person, id).await?;
    Ok(Json(Accepted { success: true }))
}

async fn sessions(
    State(app): State<App>,
    Extension(person): Extension<Person>,
) -> Result<Json<SessionsPage>, ApiError> {
    let user = person.account()?;
    Ok(Json(SessionsPage { sessions: app.core.sessions_of(&person, &user).await? }))
}

async fn end_session(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    let id = SessionId::parse(&id).map_err(|_| ApiError::bad_id("session"))?;
    app.core.end_session(caller(&person), &person, id).await?;
    Ok(Json(Accepted { success: true }))
}
