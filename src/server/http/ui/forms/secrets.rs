//! Secrets for jobs.

use app::protocol::secrets::PutSecret;
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::access::shown;
use super::{Fields, answer, field, refused};
use crate::http::request::caller;
use crate::http::secrets::check_shared;
use crate::service::access::Person;
use crate::state::App;

const PAGE: &str = "/secrets";

/// `POST /ui/secrets`
pub async fn keep(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Form(fields): Form<Fields>,
) -> Response {
    let kept = async {
        let shared = fields.contains_key("shared");
        check_shared(&app, &person, shared)?;
        let put = PutSecret { value: fields.get("value").cloned().unwrap_or_default(), shared };
        let name = field(&fields, "name").unwrap_or_default();
        app.core.put_secret(caller(&person), &person, name, put).await
    };
    match kept.await {
        Ok(_) => answer(&app, PAGE, Flash::Notice { code: Notice::SecretKept }),
        Err(refusal) => refused(&app, PAGE, FormName::Secret, refusal, shown(&fields, &["name"])),
    }
}

/// `POST /ui/secrets/{name}/remove`
pub async fn remove(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Response {
    let removed = async {
        let shared = fields.contains_key("shared");
        check_shared(&app, &person, shared)?;
        app.core.remove_secret(caller(&person), &person, &name, shared).await
    };
    match removed.await {
        Ok(()) => answer(&app, PAGE, Flash::Notice { code: Notice::SecretGone }),
        Err(refusal) => refused(&app, PAGE, FormName::Action, refusal, Fields::new()),
    }
}
