//! Second factors: what people set up on their account page.

use app::domain::ids::{PasskeyId, UserId};
use app::domain::time::Timestamp;
use app::protocol::factors::{ConfirmPasskey, RecoveryCodes};
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form as PlainForm};

use super::{Fields, answer, field, refused};
use crate::http::arrival::Scheme;
use crate::http::request::caller;
use crate::http::session::origin;
use crate::service::access::Person;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::state::App;

const ACCOUNT: &str = "/account";
const SET_UP: &str = "/account/totp";
const SET_UP_PASSKEY: &str = "/account/passkeys/new";

/// `POST /ui/account/totp`
pub async fn begin(State(app): State<App>, Extension(person): Extension<Person>) -> Response {
    match app.core.begin_totp(caller(&person), &person).await {
        Ok(_) => Redirect::to(SET_UP).into_response(),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/account/totp/confirm`
pub async fn confirm(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    PlainForm(fields): PlainForm<Fields>,
) -> Response {
    let code = fields.get("code").map_or("", String::as_str);
    match app.core.confirm_totp(caller(&person), &person, code).await {
        Ok(codes) => added(&app, codes),
        Err(refusal) => refused(&app, SET_UP, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/account/totp/remove`
pub async fn remove(State(app): State<App>, Extension(person): Extension<Person>) -> Response {
    match app.core.remove_totp(caller(&person), &person).await {
        Ok(()) => answer(&app, ACCOUNT, Flash::Notice { code: Notice::FactorRemoved }),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Factor, refusal, Fields::new()),
    }
}

/// There is one second factor more; the first comes with recovery codes.
fn added(app: &App, codes: RecoveryCodes) -> Response {
    let is_first = !codes.recovery_codes.is_empty();
    let flash = if is_first { Flash::RecoveryCodes(codes) } else { Flash::Notice { code: Notice::FactorAdded } };
    answer(app, ACCOUNT, flash)
}

/// `POST /ui/account/passkeys`
pub async fn begin_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Response {
    match app.core.begin_passkey(caller(&person), &person, origin(scheme, &headers)).await {
        Ok(_) => Redirect::to(SET_UP_PASSKEY).into_response(),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/account/passkeys/confirm`: what the browser has made. After a refusal it takes a new beginning, unless nothing
/// was answered yet.
pub async fn confirm_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    PlainForm(fields): PlainForm<Fields>,
) -> Response {
    let name = field(&fields, "name").unwrap_or_default().to_owned();
    let credential = field(&fields, "credential").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match app.core.confirm_passkey(caller(&person), &person, ConfirmPasskey { name, credential }).await {
        Ok(done) => added(&app, RecoveryCodes { recovery_codes: done.recovery_codes }),
        Err(refusal) => {
            let asks_again = matches!(refusal, Refusal::Invalid(_));
            let page = if asks_again { SET_UP_PASSKEY } else { ACCOUNT };
            refused(&app, page, FormName::Factor, refusal, Fields::new())
        }
    }
}

/// `POST /ui/account/passkeys/{id}/remove`
pub async fn remove_passkey(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Response {
    let id = PasskeyId::parse(&id).map_err(|_| Refusal::from(FactorRefusal::NoPasskey));
    let removed = match id {
        Ok(id) => app.core.remove_passkey(caller(&person), &person, id).await,
        Err(refusal) => Err(refusal),
    };
    match removed {
        Ok(()) => answer(&app, ACCOUNT, Flash::Notice { code: Notice::FactorRemoved }),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/account/recovery-codes`
pub async fn renew(State(app): State<App>, Extension(person): Extension<Person>) -> Response {
    match app.core.renew_recovery_codes(caller(&person), &person).await {
        Ok(codes) => answer(&app, ACCOUNT, Flash::RecoveryCodes(codes)),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/users/{id}/factors/remove`
pub async fn remove_of(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<UserId>,
) -> Response {
    let page = format!("/admin/users/{id}");
    match app.core.remove_factors_of(caller(&person), &person, id).await {
        Ok(()) => answer(&app, &page, Flash::Notice { code: Notice::FactorRemoved }),
        Err(refusal) => refused(&app, &page, FormName::Factor, refusal, Fields::new()),
    }
}

/// `POST /ui/account/notices/read`
pub async fn read_notices(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    PlainForm(fields): PlainForm<Fields>,
) -> Response {
    let until = field(&fields, "until").and_then(Timestamp::parse_rfc3339).unwrap_or_else(|| app.core.now());
    match app.core.read_notices(caller(&person), &person, until).await {
        Ok(()) => Redirect::to(ACCOUNT).into_response(),
        Err(refusal) => refused(&app, ACCOUNT, FormName::Action, refusal, Fields::new()),
    }
}
