//! Submit, cancel, try again, and say how urgent.

use app::domain::access::Permission;
use app::domain::ids::JobId;
use app::domain::queue::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::domain::sandbox::SandboxLevel;
use app::protocol::dispatch::CheckpointPolicy;
use app::protocol::overrides::{self, Values};
use app::protocol::status::Target;
use app::protocol::submit::{RetryJob, SubmitJob};
use app::ui::flash::{Flash, FormName, Notice, Undo};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::{Fields, answer, field, gathered, labels, refused};
use crate::http::problem::ApiError;
use crate::http::queue::job_id;
use crate::http::request::caller;
use crate::service::access::Person;
use crate::service::refusal::{Invalid, Refusal};
use crate::state::App;
use crate::text::local_path;

/// `POST /ui/jobs`
pub async fn submit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let fields = gathered(pairs);
    let submitted = match asked(&person, &fields) {
        Err(refusal) => Err(refusal),
        Ok(submit) => app.core.submit(caller(&person), submit, None).await,
    };
    match submitted {
        Ok(job) => answer(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: Notice::JobSubmitted }),
        Err(refusal) => refused(&app, "/train", FormName::Job, refusal, fields),
    }
}

/// `POST /ui/jobs/{id}/cancel`
pub async fn cancel(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = back(&id, &fields);
    Ok(match app.core.cancel(caller(&person), id).await {
        Ok(_) => answer(&app, &page, Flash::Notice { code: Notice::JobCancelled }),
        Err(refusal) => refused(&app, &page, FormName::Action, refusal, Fields::new()),
    })
}

/// `POST /ui/jobs/{id}/retry`: leads to the new job.
pub async fn retry(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = back(&id, &fields);
    let retry = RetryJob { resume_from: field(&fields, "resume_from").map(str::to_owned), ..RetryJob::default() };
    Ok(match app.core.retry(caller(&person), id, retry, None).await {
        Ok(job) => answer(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: Notice::JobSubmitted }),
        Err(refusal) => refused(&app, &page, FormName::Action, refusal, Fields::new()),
    })
}

/// `POST /ui/jobs/{id}/priority`
pub async fn prioritise(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = back(&id, &fields);
    let top = field(&fields, "top").map(|_| MAX_PRIORITY);
    let priority = top.or_else(|| field(&fields, "priority")?.parse().ok());
    let invalid = Invalid::Range { field: "priority", allowed: "0 to 50" };
    let changed = match priority {
        None => Err(invalid.into()),
        Some(priority) => app.core.set_priority(caller(&person), id.clone(), priority).await,
    };
    Ok(match changed {
        Ok(before) if Some(before) == priority => answer(&app, &page, Flash::Notice { code: Notice::JobPrioritised }),
        Ok(before) => {
            let fields = vec![("priority".to_owned(), before.to_string()), ("back".to_owned(), page.clone())];
            let undo = Undo::by_form(format!("/ui/jobs/{id}/priority"), fields);
            answer(&app, &page, Flash::Done { code: Notice::JobPrioritised, undo })
        }
        Err(refusal) => refused(&app, &page, FormName::Action, refusal, Fields::new()),
    })
}

/// The page that the form stood on: the job's own, or a list.
fn back(id: &JobId, fields: &Fields) -> String {
    field(fields, "back").map_or_else(|| format!("/jobs/{id}"), |page| local_path(page).to_owned())
}

/// The submit that a form asks for, or an address with the same names.
pub fn asked(person: &Person, fields: &Fields) -> Result<SubmitJob, Refusal> {
    let defaults = SubmitJob::of(field(fields, "config").unwrap_or_default());
    let is_set = |name| field(fields, name) == Some("true");
    let chosen = || field(fields, "secret").into_iter().flat_map(str::lines).map(str::to_owned).collect();
    let priority = number(fields, "priority", "0 to 50")?.unwrap_or(defaults.priority);
    if priority > DEFAULT_PRIORITY {
        person.need(Permission::QueueManage)?;
    }
    Ok(SubmitJob {
        target: field(fields, "target").and_then(Target::parse).unwrap_or(Target::Worker),
        worker_labels: labels(field(fields, "labels")),
        gpu_count: number(fields, "gpus", "1 to 64, or left out")?,
        min_vram_gb: number(fields, "min_vram", "more than 0, or left out")?,
        accelerator_type: field(fields, "accelerator").map(str::to_owned),
        priority,
        max_retries: number(fields, "max_retries", "0 to 100")?.unwrap_or(defaults.max_retries),
        retry_on_failure: is_set("retry_on_failure"),
        max_runtime_seconds: field(fields, "max_runtime").map(span).transpose()?,
        secrets: Some(chosen()).filter(|names: &Vec<String>| !names.is_empty()),
        config_revision: pinned(fields).or_else(|| revision_in(fields, "reviewed")),
        overrides: settings(fields)?,
        exclusive: is_set("exclusive"),
        sandbox: field(fields, "sandbox").and_then(SandboxLevel::parse).unwrap_or_default(),
        checkpoints: field(fields, "checkpoints").and_then(CheckpointPolicy::parse).unwrap_or(defaults.checkpoints),
        ..defaults
    })
}

/// The chosen revision, else the one that the retried job ran.
pub fn pinned(fields: &Fields) -> Option<u32> {
    revision_in(fields, "revision").or_else(|| revision_in(fields, "ran"))
}

/// A revision of the configuration that the form names: `digits@2`.
pub fn revision_in(fields: &Fields, name: &str) -> Option<u32> {
    let (config, revision) = field(fields, name)?.rsplit_once('@')?;
    revision.parse().ok().filter(|_| Some(config) == field(fields, "config"))
}

/// Values that this job overrides, a line each.
fn settings(fields: &Fields) -> Result<Values, Refusal> {
    let lines = field(fields, "overrides").unwrap_or_default().lines();
    let allowed = "lines like learning_rate=1e-5";
    Ok(overrides::parse(lines).map_err(|_| Invalid::Range { field: "overrides", allowed })?)
}

fn number<T: std::str::FromStr>(
    fields: &Fields,
    name: &'static str,
    allowed: &'static str,
) -> Result<Option<T>, Invalid> {
    let parse = |text: &str| text.parse().map_err(|_| Invalid::Range { field: name, allowed });
    field(fields, name).map(parse).transpose()
}

/// Seconds, of a span as the agent's settings are written: `600`, `90s`, `10m`, `2h`, `1d`.
fn span(text: &str) -> Result<u32, Invalid> {
    let (number, unit) = text.split_at(text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len());
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => 0,
    };
    let whole = number.trim().parse::<u32>().ok().and_then(|number| number.checked_mul(seconds));
    whole
        .filter(|whole| *whole > 0)
        .ok_or(Invalid::Range { field: "max_runtime", allowed: "like 90m, 12h or 2d, a year at most" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_write_them() {
        let spans = ["600", "90s", "10m", "2h", "1d", "1 h"].map(span);
        assert_eq!(spans, [Ok(600), Ok(90), Ok(600), Ok(7_200), Ok(86_400), Ok(3_600)]);
        for bad in ["h", "0m", "-1h", "1w", "1.5h", "99999999d", "2h30m", "x"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
