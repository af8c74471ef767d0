//! Secrets for jobs.

use app::protocol::secrets::PutSecret;
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::echo_fields;
use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_person;
use crate::http::secrets::check_can_share;
use crate::service::access::Principal;
use crate::state::AppState;

const PAGE_URL: &str = "/secrets";

/// `POST /ui/secrets`
pub async fn put(
    State(app): State<AppState>,
    Extension(person): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let stored = async {
        let shared = fields.contains_key("shared");
        check_can_share(&app, &person, shared)?;
        let put = PutSecret { value: fields.get("value").cloned().unwrap_or_default(), shared };
        let name = field(&fields, "name").unwrap_or_default();
        app.services.secrets.put_secret(caller_from_person(&person), &person, name, put).await
    };
    match stored.await {
        Ok(_) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::SecretSaved }),
        Err(refusal) => {
            redirect_with_problem(&app, PAGE_URL, FormName::Secret, refusal, echo_fields(&fields, &["name"]))
        }
    }
}

/// `POST /ui/secrets/{name}/remove`
pub async fn remove(
    State(app): State<AppState>,
    Extension(person): Extension<Principal>,
    Path(name): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let removed = async {
        let shared = fields.contains_key("shared");
        check_can_share(&app, &person, shared)?;
        app.services.secrets.remove_secret(caller_from_person(&person), &person, &name, shared).await
    };
    match removed.await {
        Ok(()) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::SecretDeleted }),
        Err(refusal) => redirect_with_problem(&app, PAGE_URL, FormName::Action, refusal, FormFields::new()),
    }
}
