//! Adding people, and what they may do.

use app::domain::access::Role;
use app::domain::ids::UserId;
use app::protocol::access::{CreateUser, EditUser};
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::shown;
use super::{Fields, answer, field, refused};
use crate::http::request::caller;
use crate::service::access::Person;
use crate::service::refusal::{Invalid, Refusal};
use crate::state::App;

const PAGE: &str = "/admin/users";

/// `POST /ui/users`
pub async fn add(State(app): State<App>, Extension(person): Extension<Person>, Form(fields): Form<Fields>) -> Response {
    let added = async {
        let create = CreateUser {
            name: field(&fields, "name").unwrap_or_default().to_owned(),
            role: role(&fields)?,
            // Blanks may be part of it.
            password: fields.get("password").filter(|password| !password.is_empty()).cloned(),
        };
        app.core.create_user(caller(&person), create).await
    };
    match added.await {
        Ok(_) => answer(&app, PAGE, Flash::Notice { code: Notice::PersonChanged }),
        Err(refusal) => refused(&app, PAGE, FormName::Person, refusal, shown(&fields, &["name", "role"])),
    }
}

/// `POST /ui/users/{id}`
pub async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<UserId>,
    Form(fields): Form<Fields>,
) -> Response {
    let page = format!("{PAGE}/{id}");
    let edited = async {
        let edit = EditUser { role: Some(role(&fields)?), disabled: Some(!fields.contains_key("let_in")) };
        app.core.edit_user(caller(&person), id, edit).await
    };
    match edited.await {
        Ok(_) => answer(&app, &page, Flash::Notice { code: Notice::PersonChanged }),
        Err(refusal) => refused(&app, &page, FormName::Person, refusal, Fields::new()),
    }
}

/// `POST /ui/users/{id}/password`
pub async fn reset_password(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<UserId>,
    Form(fields): Form<Fields>,
) -> Response {
    let page = format!("{PAGE}/{id}");
    let new = fields.get("new").map_or("", String::as_str);
    match app.core.reset_password(caller(&person), id, new).await {
        Ok(_) => answer(&app, &page, Flash::Notice { code: Notice::PasswordReset }),
        Err(refusal) => refused(&app, &page, FormName::Password, refusal, Fields::new()),
    }
}

fn role(fields: &Fields) -> Result<Role, Refusal> {
    let role = field(fields, "role").and_then(Role::parse);
    role.ok_or_else(|| Invalid::Range { field: "role", allowed: "viewer, researcher, lead or admin" }.into())
}
