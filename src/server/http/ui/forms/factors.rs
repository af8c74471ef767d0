//! Second factors, set up on the account page or removed by an admin; notices about the account.

use app::domain::ids::{PasskeyId, UserId};
use app::domain::time::Timestamp;
use app::protocol::access::factors::{ConfirmPasskey, RecoveryCodes};
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form as PlainForm};

use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::server_address::passkey_origin;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::error::{FactorError, ServiceError};

const ACCOUNT: &str = "/account";
const SET_UP: &str = "/account/totp";
const SET_UP_PASSKEY: &str = "/account/passkeys/new";

/// `POST /ui/account/totp`
pub async fn begin_totp(State(app): State<AppState>, Extension(principal): Extension<Principal>) -> Response {
    match app.services.access.begin_totp(caller_from_principal(&principal), &principal).await {
        Ok(_) => Redirect::to(SET_UP).into_response(),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/account/totp/confirm`
pub async fn confirm_totp(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    PlainForm(fields): PlainForm<FormFields>,
) -> Response {
    let code = fields.get("code").map_or("", String::as_str);
    match app.services.access.confirm_totp(caller_from_principal(&principal), &principal, code).await {
        Ok(codes) => factor_added(&app, codes),
        Err(error) => redirect_with_problem(&app, SET_UP, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/account/totp/remove`
pub async fn remove_totp(State(app): State<AppState>, Extension(principal): Extension<Principal>) -> Response {
    match app.services.access.remove_totp(caller_from_principal(&principal), &principal).await {
        Ok(()) => redirect_with_flash(&app, ACCOUNT, Flash::Notice { code: FlashNotice::FactorRemoved }),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Factor, error, FormFields::new()),
    }
}

/// Redirects after a second factor was added. The first one comes with recovery codes.
fn factor_added(app: &AppState, codes: RecoveryCodes) -> Response {
    let is_first = !codes.recovery_codes.is_empty();
    let flash = if is_first { Flash::RecoveryCodes(codes) } else { Flash::Notice { code: FlashNotice::FactorAdded } };
    redirect_with_flash(app, ACCOUNT, flash)
}

/// `POST /ui/account/passkeys`
pub async fn begin_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Response {
    match app
        .services
        .access
        .begin_passkey(caller_from_principal(&principal), &principal, passkey_origin(scheme, &headers))
        .await
    {
        Ok(_) => Redirect::to(SET_UP_PASSKEY).into_response(),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/account/passkeys/confirm`: stores the passkey that the browser has created. An error requires a new start,
/// except for invalid fields.
pub async fn confirm_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    PlainForm(fields): PlainForm<FormFields>,
) -> Response {
    let name = field(&fields, "name").unwrap_or_default().to_owned();
    let credential = field(&fields, "credential").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match app
        .services
        .access
        .confirm_passkey(caller_from_principal(&principal), &principal, ConfirmPasskey { name, credential })
        .await
    {
        Ok(passkey) => factor_added(&app, RecoveryCodes { recovery_codes: passkey.recovery_codes }),
        Err(error) => {
            let is_invalid = matches!(error, ServiceError::Invalid(_));
            let page = if is_invalid { SET_UP_PASSKEY } else { ACCOUNT };
            redirect_with_problem(&app, page, FormName::Factor, error, FormFields::new())
        }
    }
}

/// `POST /ui/account/passkeys/{id}/remove`
pub async fn remove_passkey(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Response {
    let id = PasskeyId::parse(&id).map_err(|_| ServiceError::from(FactorError::PasskeyNotFound));
    let removed = match id {
        Ok(id) => app.services.access.remove_passkey(caller_from_principal(&principal), &principal, id).await,
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => redirect_with_flash(&app, ACCOUNT, Flash::Notice { code: FlashNotice::FactorRemoved }),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/account/recovery-codes`
pub async fn renew_recovery_codes(State(app): State<AppState>, Extension(principal): Extension<Principal>) -> Response {
    match app.services.access.renew_recovery_codes(caller_from_principal(&principal), &principal).await {
        Ok(codes) => redirect_with_flash(&app, ACCOUNT, Flash::RecoveryCodes(codes)),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/users/{id}/factors/remove`
pub async fn remove_user_factors(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<UserId>,
) -> Response {
    let page = format!("/admin/users/{id}");
    match app.services.access.remove_user_factors(caller_from_principal(&principal), &principal, id).await {
        Ok(()) => redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::FactorRemoved }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Factor, error, FormFields::new()),
    }
}

/// `POST /ui/account/notices/read`
pub async fn mark_notices_read(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    PlainForm(fields): PlainForm<FormFields>,
) -> Response {
    let until =
        field(&fields, "until").and_then(Timestamp::parse_rfc3339).unwrap_or_else(|| app.services.context.now());
    match app.services.access.read_notices(caller_from_principal(&principal), &principal, until).await {
        Ok(()) => Redirect::to(ACCOUNT).into_response(),
        Err(error) => redirect_with_problem(&app, ACCOUNT, FormName::Action, error, FormFields::new()),
    }
}
