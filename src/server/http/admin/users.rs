//! `/api/admin/users`

use app::domain::access::Permission;
use app::domain::ids::UserId;
use app::protocol::access::{
    CreateToken, CreateUser, CreatedToken, EditUser, PasswordReset, ResetPassword, UserDetail, UserView, UsersPage,
    UsersQuery,
};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::address::{Path, Query};
use crate::http::conditional::{IfNoneMatch, Listed};
use crate::http::json::{Created, Json as Body};
use crate::http::limits;
use crate::http::openapi::doc::Doc;
use crate::http::problem::ApiError;
use crate::http::request::caller;
use crate::http::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let (users, changes) = (Needs::To(Permission::AdminUsers), Needs::ToProved(Permission::AdminUsers));
    Routes::new(app, "People")
        .get("/admin/users", users, LIST, list)
        .post("/admin/users", changes, CREATE, create)
        .get("/admin/users/{id}", users, SHOW, show)
        .patch("/admin/users/{id}", changes, EDIT, edit)
        .post("/admin/users/{id}/password", changes, RESET_PASSWORD, reset_password)
        .delete("/admin/users/{id}/factors", changes, REMOVE_FACTORS, remove_factors)
        .post("/admin/users/{id}/tokens", changes, CREATE_TOKEN, create_token)
        .within(|router| limits::bounded(router, limits::API))
}

const LIST: Doc = Doc::of("listUsers", "Lists everybody, by name.");

async fn list(
    State(app): State<App>,
    Query(query): Query<UsersQuery>,
    known: IfNoneMatch,
) -> Result<Listed<UsersPage>, ApiError> {
    Ok(known.listed(app.core.users_page(&query).await?))
}

const CREATE: Doc = Doc {
    detail: "The name is what keeps a repetition from adding somebody twice.",
    problems: &["invalid_name", "out_of_range", "weak_password", "name_taken", "no_accounts"],
    ..Doc::of("createUser", "Adds somebody.")
};

async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(create): Body<CreateUser>,
) -> Result<Created<UserView>, ApiError> {
    Ok(Created(app.core.create_user(caller(&person), create).await?))
}

const SHOW: Doc =
    Doc { problems: &["user_not_found"], ..Doc::of("getUser", "Shows somebody, with their API tokens and sessions.") };

async fn show(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<UserDetail>, ApiError> {
    Ok(Json(app.core.user_detail(&person, &user_id(&id)?).await?))
}

const EDIT: Doc = Doc {
    problems: &["user_not_found", "last_admin", "no_accounts"],
    ..Doc::of("editUser", "Changes what somebody is, or whether they are let in.")
};

async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(edit): Body<EditUser>,
) -> Result<Json<UserView>, ApiError> {
    Ok(Json(app.core.edit_user(caller(&person), user_id(&id)?, edit).await?))
}

const RESET_PASSWORD: Doc = Doc {
    detail: "Their sessions end and their API tokens are revoked; the answer says how many.",
    problems: &["user_not_found", "weak_password", "no_accounts"],
    ..Doc::of("resetPassword", "Gives somebody another password.")
};

async fn reset_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(reset): Body<ResetPassword>,
) -> Result<Json<PasswordReset>, ApiError> {
    Ok(Json(app.core.reset_password(caller(&person), user_id(&id)?, &reset.password).await?))
}

const REMOVE_FACTORS: Doc = Doc {
    detail: "For somebody who has lost them. Where the server requires a second factor, they set up \
             a new one at the next login.",
    problems: &["user_not_found", "factor_not_found", "no_accounts"],
    ..Doc::of("removeFactors", "Removes somebody's second factors and recovery codes.")
};

async fn remove_factors(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.remove_factors_of(caller(&person), &person, user_id(&id)?).await?;
    Ok(Json(Accepted { success: true }))
}

const CREATE_TOKEN: Doc = Doc {
    detail: "It can do no more than they may, nor than who makes it. Its secret is shown this once; the name keeps a \
             repetition from making a second one.",
    problems: &[
        "user_not_found",
        "invalid_name",
        "out_of_range",
        "name_taken",
        "limit_reached",
        "no_accounts",
        "permission_denied",
    ],
    ..Doc::of("createTokenFor", "Makes an API token of somebody's.")
};

async fn create_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(create): Body<CreateToken>,
) -> Result<Created<CreatedToken>, ApiError> {
    Ok(Created(app.core.create_token_for(caller(&person), &person, user_id(&id)?, create).await?))
}

fn user_id(text: &str) -> Result<UserId, ApiError> {
    UserId::parse(text).map_err(|_| ApiError::bad_id("person"))
}
