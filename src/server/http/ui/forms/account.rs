//! The user's own password, API tokens and sessions.

use app::domain::access::{Permission, Permissions};
use app::domain::allowed_values::AllowedValues;
use app::domain::ids::{SessionId, TokenId};
use app::protocol::access::CreateToken;
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::echo_fields;
use super::{FormFields, FormParser, field, redirect_with_flash, redirect_with_problem};
use crate::http::access::password_attempts::count_password_attempt;
use crate::http::edge::request::{Peer, caller_from_principal, peer_ip};
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::access::tokens::MAX_TOKEN_DAYS;
use crate::text::local_path;

const PAGE_URL: &str = "/account";

/// Returns the address of the page with the form.
fn return_url(fields: &FormFields) -> &str {
    local_path(field(fields, "next").unwrap_or(PAGE_URL))
}

/// `POST /ui/account/password`
pub async fn change_password(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    peer: Option<Extension<Peer>>,
    Form(fields): Form<FormFields>,
) -> Response {
    let text = |name: &str| fields.get(name).map_or("", String::as_str);
    let changed =
        app.services.access.change_password(caller_from_principal(&principal), &principal, text("old"), text("new"));
    match count_password_attempt(&app, &principal, peer_ip(peer), changed).await {
        Ok(()) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::PasswordChanged }),
        Err(error) => redirect_with_problem(&app, PAGE_URL, FormName::Password, error, FormFields::new()),
    }
}

/// `POST /ui/account/tokens`
pub async fn create_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let mut parser = FormParser::new(&fields);
    let create = parse_token_form(&mut parser, &fields);
    let created = match parser.finish(app.services.access.invalid_token_fields(&create)) {
        Ok(()) => app.services.access.create_token(caller_from_principal(&principal), &principal, create).await,
        Err(error) => Err(error),
    };
    match created {
        Ok(created) => redirect_with_flash(&app, PAGE_URL, Flash::TokenMade(created)),
        Err(error) => {
            redirect_with_problem(&app, PAGE_URL, FormName::Token, error, echo_fields(&fields, &["name", "days"]))
        }
    }
}

fn parse_token_form(parser: &mut FormParser<'_>, fields: &FormFields) -> CreateToken {
    let days = parser.number("days", AllowedValues::OptionalNumber { min: 1, max: MAX_TOKEN_DAYS.into() });
    let never_expires = fields.contains_key("never_expires");
    let scopes: Permissions =
        fields.keys().filter_map(|key| key.strip_prefix("scope.")).filter_map(Permission::parse).collect();
    CreateToken {
        name: field(fields, "name").unwrap_or_default().to_owned(),
        scopes: (scopes != Permissions::default()).then_some(scopes),
        // Without scripts the field for days still has its default when the box is checked.
        expires_in_days: days.filter(|_| !never_expires),
        never_expires,
    }
}

/// `POST /ui/account/tokens/{id}/revoke`
pub async fn revoke_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<TokenId>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = return_url(&fields);
    match app.services.access.revoke_token(caller_from_principal(&principal), &principal, id).await {
        Ok(()) => redirect_with_flash(&app, page, Flash::Notice { code: FlashNotice::TokenRevoked }),
        Err(error) => redirect_with_problem(&app, page, FormName::Action, error, FormFields::new()),
    }
}

/// `POST /ui/account/sessions/{id}/end`
pub async fn end_session(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<SessionId>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = return_url(&fields);
    match app.services.access.end_session(caller_from_principal(&principal), &principal, id).await {
        Ok(()) => redirect_with_flash(&app, page, Flash::Notice { code: FlashNotice::SessionEnded }),
        Err(error) => redirect_with_problem(&app, page, FormName::Action, error, FormFields::new()),
    }
}
