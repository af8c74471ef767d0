//! Submits, cancels and retries jobs, and changes their priority and what they are called.

use app::domain::access::Permission;
use app::domain::allowed_values::AllowedValues;
use app::domain::ids::JobId;
use app::domain::priority::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::protocol::jobs::SubmitJob;
use app::protocol::jobs::overrides;
use app::protocol::jobs::submit::{DescribeJob, RetryJob};
use app::protocol::status::Target;
use app::ui::flash::{Flash, FlashNotice, FormName, Undo};
use app::ui::submit_form::{InvalidText, SUBMIT_FIELDS, parse_tags};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Form};

use super::{FormFields, FormParser, empty_routes, field, merge_fields, redirect_with_flash, redirect_with_problem};
use crate::http::edge::extractors::job_id;
use crate::http::edge::request::caller_from_principal;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::{InvalidField, InvalidInput, ServiceError};
use crate::service::jobs::fields::invalid_fields;
use crate::text::local_path;

pub fn routes(app: &AppState) -> Routes {
    empty_routes(app)
        .form("/ui/jobs", Requirement::Permission(Permission::JobSubmit), submit)
        .form("/ui/jobs/{id}/cancel", Requirement::CancelJob, cancel)
        .form("/ui/jobs/{id}/retry", Requirement::SeeJobAnd(Permission::JobSubmit), retry)
        .form("/ui/jobs/{id}/fork", Requirement::SeeJobAnd(Permission::JobSubmit), fork)
        .form("/ui/jobs/{id}/describe", Requirement::DescribeJob, describe)
        .form("/ui/jobs/{id}/star", Requirement::SeeJob, star)
        .form("/ui/jobs/{id}/priority", Requirement::SeeJobAnd(Permission::QueueManage), set_priority)
}

/// `POST /ui/jobs`
async fn submit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let fields = merge_fields(pairs);
    let submitted = match parse_submit(&principal, &fields) {
        Err(error) => Err(error),
        Ok(submit) => app.services.jobs.submit(caller_from_principal(&principal), submit, None).await,
    };
    match submitted {
        Ok(job) => {
            redirect_with_flash(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: FlashNotice::JobSubmitted })
        }
        Err(error) => redirect_with_problem(&app, "/train", FormName::Job, error, fields),
    }
}

/// `POST /ui/jobs/{id}/cancel`
async fn cancel(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = return_url(&id, &fields);
    Ok(match app.services.jobs.cancel(caller_from_principal(&principal), id).await {
        Ok(_) => redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::JobCancelled }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    })
}

/// `POST /ui/jobs/{id}/retry`: redirects to the new job.
async fn retry(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = return_url(&id, &fields);
    let retry = RetryJob { resume_from: field(&fields, "resume_from").map(str::to_owned), ..RetryJob::default() };
    Ok(match app.services.jobs.retry(caller_from_principal(&principal), id, retry, None).await {
        Ok(job) => {
            redirect_with_flash(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: FlashNotice::JobSubmitted })
        }
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    })
}

/// `POST /ui/jobs/{id}/fork`: redirects to the new job.
async fn fork(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let fields = merge_fields(pairs);
    let text = |name| field(&fields, name).unwrap_or_default();
    let forked = match overrides::parse(text("overrides").lines()) {
        Err(_) => Err(InvalidInput::OutOfRange { field: "overrides", allowed: AllowedValues::Settings }.into()),
        Ok(values) => {
            let retry = RetryJob {
                resume_from: Some(text("resume_from").to_owned()),
                name: Some(text("name").to_owned()),
                overrides: Some(values),
                ..RetryJob::default()
            };
            app.services.jobs.retry(caller_from_principal(&principal), id.clone(), retry, None).await
        }
    };
    Ok(match forked {
        Ok(job) => {
            redirect_with_flash(&app, &format!("/jobs/{}", job.id), Flash::Notice { code: FlashNotice::JobSubmitted })
        }
        Err(error) => redirect_with_problem(&app, &format!("/jobs/{id}/fork"), FormName::Job, error, fields),
    })
}

/// `POST /ui/jobs/{id}/describe`
async fn describe(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let text = |name| Some(field(&fields, name).unwrap_or_default().to_owned());
    let describe = DescribeJob {
        name: text("name"),
        notes: text("notes"),
        tags: Some(parse_tags(field(&fields, "tags").unwrap_or_default())),
        ..DescribeJob::default()
    };
    Ok(match app.services.jobs.describe(caller_from_principal(&principal), id.clone(), describe).await {
        Ok(()) => redirect_with_flash(&app, &format!("/jobs/{id}"), Flash::Notice { code: FlashNotice::JobDescribed }),
        Err(error) => redirect_with_problem(&app, &format!("/jobs/{id}/describe"), FormName::Job, error, fields),
    })
}

/// `POST /ui/jobs/{id}/star`
async fn star(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let (page, is_starred) = (return_url(&id, &fields), field(&fields, "starred") == Some("true"));
    let code = if is_starred { FlashNotice::JobStarred } else { FlashNotice::JobUnstarred };
    Ok(match app.services.jobs.star(&principal, caller_from_principal(&principal), id, is_starred).await {
        Ok(()) => redirect_with_flash(&app, &page, Flash::Notice { code }),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    })
}

/// `POST /ui/jobs/{id}/priority`
async fn set_priority(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let page = return_url(&id, &fields);
    let top_priority = field(&fields, "top").map(|_| MAX_PRIORITY);
    let priority = top_priority.or_else(|| field(&fields, "priority")?.parse().ok());
    let invalid = InvalidInput::OutOfRange { field: "priority", allowed: SubmitJob::PRIORITIES };
    let changed = match priority {
        None => Err(invalid.into()),
        Some(priority) => app.services.jobs.set_priority(caller_from_principal(&principal), id.clone(), priority).await,
    };
    Ok(match changed {
        Ok(previous) if Some(previous) == priority => {
            redirect_with_flash(&app, &page, Flash::Notice { code: FlashNotice::PriorityChanged })
        }
        Ok(previous) => {
            let fields = vec![("priority".to_owned(), previous.to_string()), ("back".to_owned(), page.clone())];
            let undo = Undo::from_form(format!("/ui/jobs/{id}/priority"), fields);
            redirect_with_flash(&app, &page, Flash::Done { code: FlashNotice::PriorityChanged, undo })
        }
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    })
}

/// Returns the address of the page with the form: the job's page, or a list.
fn return_url(id: &JobId, fields: &FormFields) -> String {
    field(fields, "back").map_or_else(|| format!("/jobs/{id}"), |page| local_path(page).to_owned())
}

/// Parses a submit from a form, or from the query of an address with the same names.
pub fn parse_submit(principal: &Principal, fields: &FormFields) -> Result<SubmitJob, ServiceError> {
    let mut parser = FormParser::new(fields);
    let submit = read_submit(&mut parser, fields);
    parser.finish(invalid_fields(&submit))?;
    if submit.priority > DEFAULT_PRIORITY {
        principal.require(Permission::QueueManage)?;
    }
    Ok(submit)
}

fn read_submit(parser: &mut FormParser<'_>, fields: &FormFields) -> SubmitJob {
    let revision = pinned_revision(fields).or_else(|| revision_from_field(fields, "reviewed"));
    let defaults = SubmitJob::new(field(fields, "config").unwrap_or_default());
    let mut submit = SubmitJob { target: Target::Worker, config_revision: revision, ..defaults };
    for field in SUBMIT_FIELDS {
        parser.value(field.name, |text| {
            (field.server.parse)(&mut submit, text).map_err(|invalid| match invalid {
                InvalidText::Allowed(allowed) => InvalidField::out_of_range(field.name, allowed),
                InvalidText::Labels(error) => InvalidField::new(field.api_names[0], error),
            })
        });
    }
    submit
}

/// Returns the selected revision, or else the one that the retried job ran.
pub fn pinned_revision(fields: &FormFields) -> Option<u32> {
    revision_from_field(fields, "revision").or_else(|| revision_from_field(fields, "ran"))
}

/// Returns a revision of a configuration as the form names it: `digits@2`.
pub fn revision_from_field(fields: &FormFields, name: &str) -> Option<u32> {
    let (config, revision) = field(fields, name)?.rsplit_once('@')?;
    revision.parse().ok().filter(|_| Some(config) == field(fields, "config"))
}
