//! Secrets for jobs.

use app::protocol::secrets::PutSecret;
use app::ui::flash::{Flash, FlashNotice, FormName};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::echo_fields;
use super::{FormFields, field, redirect_with_flash, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::secrets::check_can_share;
use crate::http::state::AppState;
use crate::service::access::Principal;

const PAGE_URL: &str = "/secrets";

/// `POST /ui/secrets`
pub async fn put(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(fields): Form<FormFields>,
) -> Response {
    let stored = async {
        let shared = fields.contains_key("shared");
        check_can_share(&app, &principal, shared)?;
        let put = PutSecret { value: fields.get("value").cloned().unwrap_or_default(), shared };
        let name = field(&fields, "name").unwrap_or_default();
        app.services.secrets.put_secret(caller_from_principal(&principal), &principal, name, put).await
    };
    match stored.await {
        Ok(_) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::SecretSaved }),
        Err(error) => redirect_with_problem(&app, PAGE_URL, FormName::Secret, error, echo_fields(&fields, &["name"])),
    }
}

/// `POST /ui/secrets/{name}/remove`
pub async fn remove(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Form(fields): Form<FormFields>,
) -> Response {
    let removed = async {
        let shared = fields.contains_key("shared");
        check_can_share(&app, &principal, shared)?;
        app.services.secrets.remove_secret(caller_from_principal(&principal), &principal, &name, shared).await
    };
    match removed.await {
        Ok(()) => redirect_with_flash(&app, PAGE_URL, Flash::Notice { code: FlashNotice::SecretDeleted }),
        Err(error) => redirect_with_problem(&app, PAGE_URL, FormName::Action, error, FormFields::new()),
    }
}
