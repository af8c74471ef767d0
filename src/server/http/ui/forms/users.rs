//! Creates and edits users, and resets their passwords.

use app::domain::access::Role;
use app::domain::allowed_values::AllowedValues;
use app::domain::ids::UserId;
use app::protocol::access::{CreateUser, EditUser};
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::echo_fields;
use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};

const PAGE_URL: &str = "/admin/users";

/// `POST /ui/users`
pub async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let added = async {
        let create = CreateUser {
            name: field(&fields, "name").unwrap_or_default().to_owned(),
            role: parse_role(&fields)?,
            // Not trimmed: a password may contain spaces.
            password: fields.get("password").filter(|password| !password.is_empty()).cloned(),
        };
        app.services.access.create_user(caller_from_principal(&principal), create).await
    };
    match added.await {
        Ok(_) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::UserChanged }),
        Err(error) => {
            redirect_with_problem(&app, PAGE_URL, FormName::User, error, echo_fields(&fields, &["name", "role"]))
        }
    }
}

/// `POST /ui/users/{id}`
pub async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<UserId>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = format!("{PAGE_URL}/{id}");
    let edited = async {
        let edit = EditUser { role: Some(parse_role(&fields)?), disabled: Some(!fields.contains_key("enabled")) };
        app.services.access.edit_user(caller_from_principal(&principal), id, edit).await
    };
    match edited.await {
        Ok(_) => redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::UserChanged }),
        Err(error) => redirect_with_problem(&app, &page, FormName::User, error, FormFields::new()),
    }
}

/// `POST /ui/users/{id}/password`
pub async fn reset_password(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<UserId>,
    Form(fields): Form<FormFields>,
) -> Response {
    let page = format!("{PAGE_URL}/{id}");
    let new = fields.get("new").map_or("", String::as_str);
    match app.services.access.reset_password(caller_from_principal(&principal), id, new).await {
        Ok(_) => redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::PasswordReset }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Password, error, FormFields::new()),
    }
}

fn parse_role(fields: &FormFields) -> Result<Role, ServiceError> {
    let role = field(fields, "role").and_then(Role::parse);
    role.ok_or_else(|| InvalidInput::OutOfRange { field: "role", allowed: AllowedValues::Role }.into())
}
