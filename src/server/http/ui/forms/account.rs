//! The reader's own password, API tokens and sessions.

use app::domain::access::{Permission, Permissions};
use app::domain::ids::{SessionId, TokenId};
use app::protocol::access::CreateToken;
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::{shown, with_password};
use super::{Fields, answer, field, refused};
use crate::http::request::{Peer, address, caller};
use crate::service::access::Person;
use crate::service::refusal::{Invalid, Refusal};
use crate::state::App;
use crate::text::local_path;

const PAGE: &str = "/account";

/// The page that the form was on.
fn back(fields: &Fields) -> &str {
    local_path(field(fields, "next").unwrap_or(PAGE))
}

/// `POST /ui/account/password`
pub async fn change_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    peer: Option<Extension<Peer>>,
    Form(fields): Form<Fields>,
) -> Response {
    let text = |name: &str| fields.get(name).map_or("", String::as_str);
    let changed = app.core.change_password(caller(&person), &person, text("old"), text("new"));
    match with_password(&app, &person, address(peer), changed).await {
        Ok(()) => answer(&app, PAGE, Flash::Notice { code: Notice::PasswordChanged }),
        Err(refusal) => refused(&app, PAGE, FormName::Password, refusal, Fields::new()),
    }
}

/// `POST /ui/account/tokens`
pub async fn create_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Form(fields): Form<Fields>,
) -> Response {
    let made = match asked(&fields) {
        Ok(create) => app.core.create_token(caller(&person), &person, create).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(made) => answer(&app, PAGE, Flash::TokenMade(made)),
        Err(refusal) => refused(&app, PAGE, FormName::Token, refusal, shown(&fields, &["name"])),
    }
}

fn asked(fields: &Fields) -> Result<CreateToken, Refusal> {
    let days = field(fields, "days").map(str::parse).transpose();
    let days = days.map_err(|_| Invalid::Range { field: "expires_in_days", allowed: "1 to 3660, or left out" })?;
    let never_expires = fields.contains_key("never_expires");
    let scopes: Permissions =
        fields.keys().filter_map(|key| key.strip_prefix("scope.")).filter_map(Permission::parse).collect();
    Ok(CreateToken {
        name: field(fields, "name").unwrap_or_default().to_owned(),
        scopes: (scopes != Permissions::default()).then_some(scopes),
        // The field of days holds the default when the box is ticked without scripts.
        expires_in_days: days.filter(|_| !never_expires),
        never_expires,
    })
}

/// `POST /ui/account/tokens/{id}/revoke`
pub async fn revoke_token(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<TokenId>,
    Form(fields): Form<Fields>,
) -> Response {
    let back = back(&fields);
    match app.core.revoke_token(caller(&person), &person, id).await {
        Ok(()) => answer(&app, back, Flash::Notice { code: Notice::TokenRevoked }),
        Err(refusal) => refused(&app, back, FormName::Action, refusal, Fields::new()),
    }
}

/// `POST /ui/account/sessions/{id}/end`
pub async fn end_session(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<SessionId>,
    Form(fields): Form<Fields>,
) -> Response {
    let back = back(&fields);
    match app.core.end_session(caller(&person), &person, id).await {
        Ok(()) => answer(&app, back, Flash::Notice { code: Notice::SessionEnded }),
        Err(refusal) => refused(&app, back, FormName::Action, refusal, Fields::new()),
    }
}
