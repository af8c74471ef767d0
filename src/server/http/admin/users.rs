//! `/api/admin/users`

use app::domain::access::Permission;
use app::domain::ids::UserId;
use app::protocol::access::{
    CreateToken, CreateUser, CreatedToken, EditUser, ResetPassword, UserDetail, UserView, UsersPage,
};
use app::protocol::worker::Accepted;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};

use crate::http::json::Json as Body;
use crate::http::limits;
use crate::http::problem::ApiError;
use crate::http::request::caller;
use crate::http::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let users = Needs::To(Permission::AdminUsers);
    Routes::new(app)
        .get("/admin/users", users, list)
        .post("/admin/users", users, create)
        .get("/admin/users/{id}", users, show)
        .patch("/admin/users/{id}", users, edit)
        .post("/admin/users/{id}/password", users, reset_password)
        .post("/admin/users/{id}/tokens", users, create_token)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::API)))
}

async fn list(State(app): State<App>) -> Result<Json<UsersPage>, ApiError> {
    Ok(Json(app.core.users_page().await?))
}

async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(create): Body<CreateUser>,
) -> Result<(StatusCode, Json<UserView>), ApiError> {
    Ok((StatusCode::CREATED, Json(app.core.create_user(caller(&person), create).await?)))
}

async fn show(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<UserDetail>, ApiError> {
    Ok(Json(app.core.user_detail(&person, &user_id(&id)?).await?))
}

async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(edit): Body<EditUser>,
) -> Result<Json<UserView>, ApiError> {
    Ok(Json(app.core.edit_user(caller(&person), user_id(&id)?, edit).await?))
}

async fn reset_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(reset): Body<ResetPassword>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.reset_password(caller(&person), user_id(&id)?, &reset.password).await?;
    Ok(Json(Accepted { success: true }))
}

async fn create_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(create): Body<CreateToken>,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    let created = app.core.create_token_for(caller(&person), &person, user_id(&id)?, create).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

fn user_id(text: &str) -> Result<UserId, ApiError> {
    UserId::parse(text).map_err(|_| ApiError::bad_id("person"))
}
