//! `/api/account/factors`, `/api/account/totp`, `/api/account/passkeys` and `/api/account/notices`: the caller's second
//! factors, and what they should know of their account.

use app::domain::access::Permission;
use app::domain::ids::PasskeyId;
use app::protocol::factors::{
    AddedPasskey, ConfirmPasskey, ConfirmTotp, FactorsView, PasskeyEnrolment, RecoveryCodes, TotpEnrolment,
};
use app::protocol::notices::{NoticesPage, ReadNotices};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};

use super::address::Path;
use super::arrival::Scheme;
use super::json::{Created, Json as Body};
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use super::{limits, session};
use crate::service::access::{Needs, Person};
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let (own, proved) = (Needs::To(Permission::AccountManage), Needs::ToProved(Permission::AccountManage));
    Routes::new(app, "Account")
        .get("/account/factors", own, SHOW, show)
        .post("/account/totp", proved, BEGIN, begin)
        .post("/account/totp/confirm", own, CONFIRM, confirm)
        .delete("/account/totp", proved, REMOVE, remove)
        .post("/account/passkeys", proved, BEGIN_PASSKEY, begin_passkey)
        .post("/account/passkeys/confirm", own, CONFIRM_PASSKEY, confirm_passkey)
        .delete("/account/passkeys/{id}", proved, REMOVE_PASSKEY, remove_passkey)
        .post("/account/recovery-codes", proved, RENEW, renew)
        .get("/account/notices", own, NOTICES, notices)
        .post("/account/notices/read", own, READ, read)
        .within(|router| limits::bounded(router, limits::API))
}

const SHOW: Doc = Doc {
    problems: &["no_accounts", "no_person"],
    ..Doc::of("getFactors", "Shows which second factors the caller has set up.")
};

async fn show(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<FactorsView>, ApiError> {
    Ok(Json(app.core.factors_of(&person.account()?).await?))
}

const BEGIN: Doc = Doc {
    detail: "The key goes into an authenticator app, whose first code `confirmTotp` takes; until then nothing changes. It \
             takes a browser that was logged in with a password.",
    problems: &["factor_exists", "no_password_session", "secret_key_unavailable", "no_accounts", "no_person"],
    ..Doc::of("beginTotp", "Makes a key for an authenticator app of the caller's.")
};

async fn begin(
    State(app): State<App>,
    Extension(person): Extension<Person>,
) -> Result<Created<TotpEnrolment>, ApiError> {
    Ok(Created(app.core.begin_totp(caller(&person), &person).await?))
}

const CONFIRM: Doc = Doc {
    detail: "From then on a login takes a code of the app, or another second factor. If this is the first, the recovery codes \
             are in this answer and never again.",
    problems: &[
        "wrong_code",
        "no_enrolment",
        "no_password_session",
        "secret_key_unavailable",
        "no_accounts",
        "no_person",
    ],
    ..Doc::of("confirmTotp", "Turns the caller's authenticator app on, by its first code.")
};

async fn confirm(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(confirm): Body<ConfirmTotp>,
) -> Result<Json<RecoveryCodes>, ApiError> {
    Ok(Json(app.core.confirm_totp(caller(&person), &person, &confirm.code).await?))
}

const REMOVE: Doc = Doc {
    detail: "The recovery codes go with the last second factor.",
    problems: &["factor_not_found", "no_password_session", "no_accounts", "no_person"],
    ..Doc::of("removeTotp", "Removes the caller's authenticator app.")
};

async fn remove(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<Accepted>, ApiError> {
    app.core.remove_totp(caller(&person), &person).await?;
    Ok(Json(Accepted { success: true }))
}

const BEGIN_PASSKEY: Doc = Doc {
    detail: "The options go to `navigator.credentials.create()`, whose answer `confirmPasskey` takes within ten minutes. It takes \
             a browser that was logged in with a password, over HTTPS or on this machine, under a name.",
    problems: &["no_passkeys_here", "too_much", "no_password_session", "no_accounts", "no_person"],
    ..Doc::of("beginPasskey", "Begins to add a passkey of the caller's.")
};

async fn begin_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Result<Created<PasskeyEnrolment>, ApiError> {
    Ok(Created(app.core.begin_passkey(caller(&person), &person, session::origin(scheme, &headers)).await?))
}

const CONFIRM_PASSKEY: Doc = Doc {
    detail: "From then on a login takes the passkey, or another second factor. If this is the first, the recovery codes are in \
             this answer and never again. What was refused has to begin anew.",
    problems: &[
        "wrong_passkey",
        "passkey_expired",
        "passkey_exists",
        "out_of_range",
        "too_much",
        "no_password_session",
        "no_accounts",
        "no_person",
    ],
    ..Doc::of("confirmPasskey", "Adds the passkey that the caller's browser has made.")
};

async fn confirm_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(confirm): Body<ConfirmPasskey>,
) -> Result<Created<AddedPasskey>, ApiError> {
    Ok(Created(app.core.confirm_passkey(caller(&person), &person, confirm).await?))
}

const REMOVE_PASSKEY: Doc = Doc {
    detail: "The recovery codes go with the last second factor.",
    problems: &["passkey_not_found", "no_password_session", "no_accounts", "no_person"],
    ..Doc::of("removePasskey", "Removes a passkey of the caller's.")
};

async fn remove_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    let id = PasskeyId::parse(&id).map_err(|_| Refusal::from(FactorRefusal::NoPasskey))?;
    app.core.remove_passkey(caller(&person), &person, id).await?;
    Ok(Json(Accepted { success: true }))
}

const RENEW: Doc = Doc {
    detail: "The ones before stop working.",
    problems: &["factor_not_found", "no_password_session", "no_accounts", "no_person"],
    ..Doc::of("renewRecoveryCodes", "Makes new recovery codes for the caller.")
};

async fn renew(
    State(app): State<App>,
    Extension(person): Extension<Person>,
) -> Result<Created<RecoveryCodes>, ApiError> {
    Ok(Created(app.core.renew_recovery_codes(caller(&person), &person).await?))
}

const NOTICES: Doc = Doc {
    detail: "Logins that look unfamiliar, and changes of the password and the second factor.",
    problems: &["no_accounts", "no_person"],
    ..Doc::of("listNotices", "Lists the unread notices about the caller's account, newest first.")
};

async fn notices(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<NoticesPage>, ApiError> {
    Ok(Json(app.core.notices_page(&person).await?))
}

const READ: Doc = Doc {
    detail: "The audit trail keeps what they are about.",
    problems: &["no_accounts", "no_person"],
    ..Doc::of("readNotices", "Marks the caller's notices as read, up to a moment.")
};

async fn read(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(read): Body<ReadNotices>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.read_notices(caller(&person), &person, read.until).await?;
    Ok(Json(Accepted { success: true }))
}
