//! `/api/account/factors`, `/api/account/totp` and `/api/account/notices`: the caller's second factor, and what they should
//! know of their account.

use app::domain::access::Permission;
use app::protocol::factors::{ConfirmTotp, FactorsView, RecoveryCodes, TotpEnrolment};
use app::protocol::notices::{NoticesPage, ReadNotices};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::{Extension, Json};

use super::json::{Created, Json as Body};
use super::limits;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let (own, proved) = (Needs::To(Permission::AccountManage), Needs::ToProved(Permission::AccountManage));
    Routes::new(app, "Account")
        .get("/account/factors", own, SHOW, show)
        .post("/account/totp", proved, BEGIN, begin)
        .post("/account/totp/confirm", own, CONFIRM, confirm)
        .delete("/account/totp", proved, REMOVE, remove)
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
    detail: "From then on a login takes a code of the app. The recovery codes are in this answer and never again.",
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
    problems: &["factor_not_found", "no_password_session", "no_accounts", "no_person"],
    ..Doc::of("removeTotp", "Removes the caller's authenticator app and recovery codes.")
};

async fn remove(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<Accepted>, ApiError> {
    app.core.remove_totp(caller(&person), &person).await?;
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
