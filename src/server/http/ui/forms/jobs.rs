//! Submit and cancel.

use app::protocol::dispatch::CheckpointPolicy;
use app::protocol::queue::SubmitJob;
use app::protocol::status::Target;
use app::ui::flash::{Flash, FormName, Notice};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Form};

use super::{Fields, answer, field, labels, refused};
use crate::http::queue::job_id;
use crate::http::request::caller;
use crate::service::access::Person;
use crate::service::refusal::Invalid;
use crate::state::App;

/// `POST /ui/jobs`
pub async fn submit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Form(fields): Form<Fields>,
) -> Response {
    let submitted = match asked(&fields) {
        Err(invalid) => Err(invalid.into()),
        Ok(submit) => app.core.submit(caller(&person), submit, None).await,
    };
    match submitted {
        Ok(job) => answer(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: Notice::JobSubmitted }),
        Err(refusal) => refused(&app, "/train", FormName::Job, refusal, fields),
    }
}

/// `POST /ui/jobs/{id}/cancel`
pub async fn cancel(State(app): State<App>, Extension(person): Extension<Person>, Path(id): Path<String>) -> Response {
    let id = match job_id(&id) {
        Ok(id) => id,
        Err(error) => return error.into_response(),
    };
    let page = format!("/jobs/{id}");
    match app.core.cancel(caller(&person), id).await {
        Ok(_) => answer(&app, &page, Flash::Notice { code: Notice::JobCancelled }),
        Err(refusal) => refused(&app, &page, FormName::Action, refusal, Fields::new()),
    }
}

fn asked(fields: &Fields) -> Result<SubmitJob, Invalid> {
    let defaults = SubmitJob::of(field(fields, "config_name").unwrap_or_default());
    Ok(SubmitJob {
        target: field(fields, "target").and_then(Target::parse).unwrap_or(defaults.target),
        worker_labels: labels(field(fields, "worker_labels")),
        gpu_count: number(fields, "gpu_count", "1 to 64, or left out")?,
        max_retries: number(fields, "max_retries", "0 to 100")?.unwrap_or(defaults.max_retries),
        exclusive: field(fields, "exclusive") == Some("true"),
        checkpoints: field(fields, "checkpoints").and_then(CheckpointPolicy::parse).unwrap_or(defaults.checkpoints),
        ..defaults
    })
}

fn number(fields: &Fields, name: &'static str, allowed: &'static str) -> Result<Option<u32>, Invalid> {
    let parse = |text: &str| text.parse().map_err(|_| Invalid::Range { field: name, allowed });
    field(fields, name).map(parse).transpose()
}
