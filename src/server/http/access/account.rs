//! `/api/account`: password, API tokens and sessions of the caller.

use app::domain::access::Permission;
use app::domain::ids::{SessionId, TokenId};
use app::protocol::access::{ChangePassword, CreateToken, CreatedToken, SessionsPage, TokensPage};
use app::protocol::agents::ReportResponse;
use axum::extract::State;
use axum::{Extension, Json};

use super::password_attempts::count_password_attempt;
use crate::http::edge::extractors::Path;
use crate::http::edge::json::{CreatedJson, Json as Body};
use crate::http::edge::limits;
use crate::http::edge::request::{Peer, caller_from_principal, peer_ip};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::IdKind;

/// One of these is required to revoke tokens and end sessions, one's own or those of others.
pub const END_PERMISSIONS: &[Permission] = &[Permission::AccountManage, Permission::AdminUsers];

pub fn routes(app: &AppState) -> Routes {
    let manage_account = Requirement::Permission(Permission::AccountManage);
    Routes::new(app, "Account")
        .post("/account/password", manage_account, CHANGE_PASSWORD, change_password)
        .get("/account/tokens", manage_account, TOKENS, tokens)
        .post(
            "/account/tokens",
            Requirement::RecentlyAuthenticated(Permission::AccountManage),
            CREATE_TOKEN,
            create_token,
        )
        .delete("/account/tokens/{id}", Requirement::OwnTokenOr(END_PERMISSIONS), REVOKE_TOKEN, revoke_token)
        .get("/account/sessions", manage_account, SESSIONS, sessions)
        .delete("/account/sessions/{id}", Requirement::AnyOf(END_PERMISSIONS), END_SESSION, end_session)
        .layer(|router| limits::limit_body(router, limits::API))
}

const CHANGE_PASSWORD: OperationDoc = OperationDoc {
    description: "Ends the caller's other sessions.",
    problems: &["wrong_password", "weak_password", "no_accounts", "user_required"],
    ..OperationDoc::new("changePassword", "Changes the caller's password.")
};

async fn change_password(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    peer: Option<Extension<Peer>>,
    Body(change): Body<ChangePassword>,
) -> Result<Json<ReportResponse>, ApiError> {
    let changed =
        app.services.access.change_password(caller_from_principal(&principal), &principal, &change.old, &change.new);
    count_password_attempt(&app, &principal, peer_ip(peer), changed).await?;
    Ok(Json(ReportResponse { success: true }))
}

const TOKENS: OperationDoc = OperationDoc {
    problems: &["no_accounts", "user_required"],
    ..OperationDoc::new("listTokens", "Lists the caller's API tokens, oldest first.")
};

async fn tokens(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<TokensPage>, ApiError> {
    let user = principal.account_id()?;
    Ok(Json(TokensPage { tokens: app.services.access.user_tokens(&user).await? }))
}

const CREATE_TOKEN: OperationDoc = OperationDoc {
    description: "The token is only in this response, so a repeated request cannot return it: \
             the unique name prevents a second one.",
    problems: &[
        "invalid_name",
        "out_of_range",
        "permission_denied",
        "name_taken",
        "limit_reached",
        "no_accounts",
        "user_required",
    ],
    ..OperationDoc::new("createToken", "Creates an API token for the caller.")
};

async fn create_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(create): Body<CreateToken>,
) -> Result<CreatedJson<CreatedToken>, ApiError> {
    Ok(CreatedJson(app.services.access.create_token(caller_from_principal(&principal), &principal, create).await?))
}

const REVOKE_TOKEN: OperationDoc = OperationDoc {
    description: "The token stops working, and sessions that it opened end. A token can revoke itself, whatever its \
             scopes. `admin.users` applies to users with no more permissions than the caller.",
    problems: &["permission_denied", "token_not_found", "no_accounts", "user_required"],
    ..OperationDoc::new("revokeToken", "Revokes an API token of the caller.")
};

async fn revoke_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    let id = TokenId::parse(&id).map_err(|_| ApiError::invalid_id(IdKind::ApiToken))?;
    app.services.access.revoke_token(caller_from_principal(&principal), &principal, id).await?;
    Ok(Json(ReportResponse { success: true }))
}

const SESSIONS: OperationDoc = OperationDoc {
    problems: &["no_accounts", "user_required"],
    ..OperationDoc::new("listSessions", "Lists the caller's browser sessions.")
};

async fn sessions(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<SessionsPage>, ApiError> {
    Ok(Json(app.services.access.sessions_page(&principal).await?))
}

const END_SESSION: OperationDoc = OperationDoc {
    description: "`admin.users` applies to users with no more permissions than the caller.",
    problems: &["session_not_found", "no_accounts", "user_required"],
    ..OperationDoc::new("endSession", "Ends a browser session of the caller.")
};

async fn end_session(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    let id = SessionId::parse(&id).map_err(|_| ApiError::invalid_id(IdKind::Session))?;
    app.services.access.end_session(caller_from_principal(&principal), &principal, id).await?;
    Ok(Json(ReportResponse { success: true }))
}
