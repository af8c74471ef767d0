//! `/api/account/factors`, `/api/account/totp`, `/api/account/passkeys` and `/api/account/notices`: second factors and
//! account notices of the caller.

use app::domain::access::Permission;
use app::domain::ids::PasskeyId;
use app::protocol::access::factors::{
    AddedPasskey, ConfirmPasskey, ConfirmTotp, FactorsView, PasskeyEnrollment, RecoveryCodes, TotpEnrollment,
};
use app::protocol::access::notices::{NoticesPage, ReadNotices};
use app::protocol::agents::ReportResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};

use crate::http::edge::client_addr::Scheme;
use crate::http::edge::extractors::Path;
use crate::http::edge::json::{CreatedJson, Json as Body};
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::server_address::passkey_origin;
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::{FactorError, ServiceError};

pub fn routes(app: &AppState) -> Routes {
    let (manage_account, recently_authenticated) = (
        Requirement::Permission(Permission::AccountManage),
        Requirement::RecentlyAuthenticated(Permission::AccountManage),
    );
    Routes::new(app, "Account")
        .get("/account/factors", manage_account, SHOW, show)
        .post("/account/totp", recently_authenticated, BEGIN, begin)
        .post("/account/totp/confirm", manage_account, CONFIRM, confirm)
        .delete("/account/totp", recently_authenticated, REMOVE, remove)
        .post("/account/passkeys", recently_authenticated, BEGIN_PASSKEY, begin_passkey)
        .post("/account/passkeys/confirm", manage_account, CONFIRM_PASSKEY, confirm_passkey)
        .delete("/account/passkeys/{id}", recently_authenticated, REMOVE_PASSKEY, remove_passkey)
        .post("/account/recovery-codes", recently_authenticated, RENEW, renew)
        .get("/account/notices", manage_account, NOTICES, notices)
        .post("/account/notices/read", manage_account, READ, read)
        .layer(|router| limits::limit_body(router, limits::API))
}

const SHOW: OperationDoc = OperationDoc {
    problems: &["no_accounts", "user_required"],
    ..OperationDoc::new("getFactors", "Shows which second factors the caller has set up.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<FactorsView>, ApiError> {
    Ok(Json(app.services.access.user_factors(&principal.account_id()?).await?))
}

const BEGIN: OperationDoc = OperationDoc {
    description: "The key is for an authenticator app, whose first code is sent to `confirmTotp`; until then nothing changes. It \
             requires a browser session that was opened with a password.",
    problems: &["factor_exists", "no_password_session", "secret_key_unavailable", "no_accounts", "user_required"],
    ..OperationDoc::new("beginTotp", "Creates a key for an authenticator app of the caller.")
};

async fn begin(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<CreatedJson<TotpEnrollment>, ApiError> {
    Ok(CreatedJson(app.services.access.begin_totp(caller_from_principal(&principal), &principal).await?))
}

const CONFIRM: OperationDoc = OperationDoc {
    description: "From now on, sign-in requires a code of the app, or another second factor. If this is the first, the recovery codes \
             are only in this response.",
    problems: &[
        "wrong_code",
        "enrollment_not_started",
        "no_password_session",
        "secret_key_unavailable",
        "no_accounts",
        "user_required",
    ],
    ..OperationDoc::new("confirmTotp", "Enables the caller's authenticator app with its first code.")
};

async fn confirm(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(confirm): Body<ConfirmTotp>,
) -> Result<Json<RecoveryCodes>, ApiError> {
    Ok(Json(app.services.access.confirm_totp(caller_from_principal(&principal), &principal, &confirm.code).await?))
}

const REMOVE: OperationDoc = OperationDoc {
    description: "Recovery codes are deleted with the last second factor.",
    problems: &["factor_not_found", "no_password_session", "no_accounts", "user_required"],
    ..OperationDoc::new("removeTotp", "Removes the caller's authenticator app.")
};

async fn remove(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.access.remove_totp(caller_from_principal(&principal), &principal).await?;
    Ok(Json(ReportResponse { success: true }))
}

const BEGIN_PASSKEY: OperationDoc = OperationDoc {
    description: "The options are for `navigator.credentials.create()`, whose result is sent to `confirmPasskey` within ten minutes. It requires \
             a browser session that was opened with a password, over HTTPS or on the server's host, under a host name.",
    problems: &["passkeys_unavailable", "too_large", "no_password_session", "no_accounts", "user_required"],
    ..OperationDoc::new("beginPasskey", "Starts to add a passkey of the caller.")
};

async fn begin_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Result<CreatedJson<PasskeyEnrollment>, ApiError> {
    Ok(CreatedJson(
        app.services
            .access
            .begin_passkey(caller_from_principal(&principal), &principal, passkey_origin(scheme, &headers))
            .await?,
    ))
}

const CONFIRM_PASSKEY: OperationDoc = OperationDoc {
    description: "From now on, sign-in requires the passkey, or another second factor. If this is the first, the recovery codes are only in \
             this response. After a rejection, start again.",
    problems: &[
        "wrong_passkey",
        "passkey_expired",
        "passkey_exists",
        "out_of_range",
        "too_large",
        "no_password_session",
        "no_accounts",
        "user_required",
    ],
    ..OperationDoc::new("confirmPasskey", "Adds the passkey that the caller's browser has created.")
};

async fn confirm_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(confirm): Body<ConfirmPasskey>,
) -> Result<CreatedJson<AddedPasskey>, ApiError> {
    Ok(CreatedJson(app.services.access.confirm_passkey(caller_from_principal(&principal), &principal, confirm).await?))
}

const REMOVE_PASSKEY: OperationDoc = OperationDoc {
    description: "Recovery codes are deleted with the last second factor.",
    problems: &["passkey_not_found", "no_password_session", "no_accounts", "user_required"],
    ..OperationDoc::new("removePasskey", "Removes a passkey of the caller.")
};

async fn remove_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    let id = PasskeyId::parse(&id).map_err(|_| ServiceError::from(FactorError::PasskeyNotFound))?;
    app.services.access.remove_passkey(caller_from_principal(&principal), &principal, id).await?;
    Ok(Json(ReportResponse { success: true }))
}

const RENEW: OperationDoc = OperationDoc {
    description: "The previous ones stop working.",
    problems: &["factor_not_found", "no_password_session", "no_accounts", "user_required"],
    ..OperationDoc::new("renewRecoveryCodes", "Creates new recovery codes for the caller.")
};

async fn renew(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<CreatedJson<RecoveryCodes>, ApiError> {
    Ok(CreatedJson(app.services.access.renew_recovery_codes(caller_from_principal(&principal), &principal).await?))
}

const NOTICES: OperationDoc = OperationDoc {
    description: "Unfamiliar sign-ins, and changes of the password and second factors.",
    problems: &["no_accounts", "user_required"],
    ..OperationDoc::new("listNotices", "Lists the unread notices about the caller's account, newest first.")
};

async fn notices(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<NoticesPage>, ApiError> {
    Ok(Json(app.services.access.notices_page(&principal).await?))
}

const READ: OperationDoc = OperationDoc {
    description: "The audit log keeps the events.",
    problems: &["no_accounts", "user_required"],
    ..OperationDoc::new("readNotices", "Marks the caller's notices as read, up to a given time.")
};

async fn read(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(read): Body<ReadNotices>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.access.read_notices(caller_from_principal(&principal), &principal, read.until).await?;
    Ok(Json(ReportResponse { success: true }))
}
