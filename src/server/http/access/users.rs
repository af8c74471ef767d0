//! `/api/admin/users`

use app::domain::access::Permission;
use app::domain::ids::UserId;
use app::protocol::access::{
    CreateToken, CreateUser, CreatedToken, EditUser, PasswordReset, ResetPassword, UserDetail, UserView, UsersPage,
    UsersQuery,
};
use app::protocol::agents::ReportResponse;
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::edge::conditional::{IfNoneMatch, ListResponse};
use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::json::{CreatedJson, Json as Body};
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::IdKind;

pub fn routes(app: &AppState) -> Routes {
    let (manage_users, change_users) =
        (Requirement::Permission(Permission::AdminUsers), Requirement::RecentlyAuthenticated(Permission::AdminUsers));
    Routes::new(app, "Users")
        .get("/admin/users", manage_users, LIST, list)
        .post("/admin/users", change_users, CREATE, create)
        .get("/admin/users/{id}", manage_users, SHOW, show)
        .patch("/admin/users/{id}", change_users, EDIT, edit)
        .post("/admin/users/{id}/password", change_users, RESET_PASSWORD, reset_password)
        .delete("/admin/users/{id}/factors", change_users, REMOVE_FACTORS, remove_factors)
        .post("/admin/users/{id}/tokens", change_users, CREATE_TOKEN, create_token)
        .layer(|router| limits::limit_body(router, limits::API))
}

const LIST: OperationDoc = OperationDoc::new("listUsers", "Lists users by name.");

async fn list(
    State(app): State<AppState>,
    Query(query): Query<UsersQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<UsersPage>, ApiError> {
    Ok(if_none_match.listed(app.services.access.users_page(&query).await?))
}

const CREATE: OperationDoc = OperationDoc {
    description: "The unique name makes the request safe to repeat.",
    problems: &["invalid_name", "out_of_range", "weak_password", "name_taken", "no_accounts"],
    ..OperationDoc::new("createUser", "Adds a user.")
};

async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(create): Body<CreateUser>,
) -> Result<CreatedJson<UserView>, ApiError> {
    Ok(CreatedJson(app.services.access.create_user(caller_from_principal(&principal), create).await?))
}

const SHOW: OperationDoc = OperationDoc {
    problems: &["user_not_found"],
    ..OperationDoc::new("getUser", "Shows a user with their API tokens and sessions.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<UserDetail>, ApiError> {
    Ok(Json(app.services.access.user_detail(&principal, &user_id(&id)?).await?))
}

const EDIT: OperationDoc = OperationDoc {
    problems: &["user_not_found", "last_admin", "no_accounts"],
    ..OperationDoc::new("editUser", "Changes a user's role, or disables or enables the user.")
};

async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Body(edit): Body<EditUser>,
) -> Result<Json<UserView>, ApiError> {
    Ok(Json(app.services.access.edit_user(caller_from_principal(&principal), user_id(&id)?, edit).await?))
}

const RESET_PASSWORD: OperationDoc = OperationDoc {
    description: "Ends their sessions and revokes their API tokens; the response contains the numbers.",
    problems: &["user_not_found", "weak_password", "no_accounts"],
    ..OperationDoc::new("resetPassword", "Sets a user's password.")
};

async fn reset_password(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Body(reset): Body<ResetPassword>,
) -> Result<Json<PasswordReset>, ApiError> {
    Ok(Json(
        app.services.access.reset_password(caller_from_principal(&principal), user_id(&id)?, &reset.password).await?,
    ))
}

const REMOVE_FACTORS: OperationDoc = OperationDoc {
    description: "For a user who has lost them. If the server requires a second factor, the user sets up \
             a new one at the next sign-in.",
    problems: &["user_not_found", "factor_not_found", "no_accounts"],
    ..OperationDoc::new("removeFactors", "Removes a user's second factors and recovery codes.")
};

async fn remove_factors(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.access.remove_user_factors(caller_from_principal(&principal), &principal, user_id(&id)?).await?;
    Ok(Json(ReportResponse { success: true }))
}

const CREATE_TOKEN: OperationDoc = OperationDoc {
    description: "It has no more permissions than the user and the caller. It is only in this response; the unique name prevents a \
             second one.",
    problems: &[
        "user_not_found",
        "invalid_name",
        "out_of_range",
        "name_taken",
        "limit_reached",
        "no_accounts",
        "permission_denied",
    ],
    ..OperationDoc::new("createTokenFor", "Creates an API token of a user.")
};

async fn create_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Body(create): Body<CreateToken>,
) -> Result<CreatedJson<CreatedToken>, ApiError> {
    Ok(CreatedJson(
        app.services
            .access
            .create_token_for(caller_from_principal(&principal), &principal, user_id(&id)?, create)
            .await?,
    ))
}

fn user_id(text: &str) -> Result<UserId, ApiError> {
    UserId::parse(text).map_err(|_| ApiError::invalid_id(IdKind::User))
}
