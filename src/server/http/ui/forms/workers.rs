//! Creates, edits, drains, resumes and deletes workers, rotates their tokens and acknowledges alerts.

use app::domain::ids::WorkerId;
use app::domain::worker::WorkerKind;
use app::protocol::status::WorkerType;
use app::protocol::workers::{CreateWorker, DrainWorker, EditWorker, RotateToken, TokenLifetime};
use app::ui::flash::{Flash, FlashNotice, FormName, Undo};
use app::ui::worker_edit_form::undo_edit;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Form};

use super::{
    FormFields, FormParser, LINES, LINES_OR_COMMAS, field, merge_fields, redirect_with_flash, redirect_with_problem,
};
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::extractors::worker_id;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::server_address::{ServerAddress, server_address};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::http::ui::start_methods::start_methods;
use crate::http::workers::created_worker_view;
use crate::service::access::Principal;
use crate::service::error::ServiceError;
use crate::service::workers::{WorkerWithToken, invalid_edit_fields, revision};

/// `POST /ui/workers`
pub async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let fields = merge_fields(pairs);
    let mut parser = FormParser::new(&fields);
    let create = CreateWorker {
        name: field(&fields, "name").unwrap_or_default().to_owned(),
        worker_type: field(&fields, "worker_type").and_then(WorkerType::parse),
        labels: parser.labels("labels", LINES_OR_COMMAS),
        ignore_reported_labels: false,
        reject_older_agents: false,
        allowed_networks: parse_networks(field(&fields, "networks")),
        lifetime: parse_token_lifetime(&fields),
    };
    let created = match parser.finish(app.services.workers.invalid_worker_fields(&create)) {
        Err(error) => Err(error),
        Ok(()) => app.services.workers.create_worker(caller_from_principal(&principal), create).await,
    };
    match created {
        Err(error) => redirect_with_problem(&app, "/admin/workers/new", FormName::Worker, error, fields),
        Ok(created) => redirect_to_new_token(&app, &server_address(&app, scheme, &headers), created),
    }
}

/// `POST /ui/workers/{id}/edit`
pub async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let (id, fields) = (worker_id(&id)?, merge_fields(pairs));
    let mut parser = FormParser::new(&fields);
    let edit = EditWorker {
        name: Some(field(&fields, "name").unwrap_or_default().to_owned()),
        worker_type: field(&fields, "worker_type").and_then(WorkerType::parse),
        labels: Some(parser.labels("labels", LINES)),
        ignore_reported_labels: Some(fields.contains_key("ignore_reported_labels")),
        reject_older_agents: Some(fields.contains_key("reject_older_agents")),
        allowed_networks: Some(parse_networks(field(&fields, "networks"))),
        settle_token_conflict: false,
    };
    let submitted_revision = field(&fields, "revision").unwrap_or_default().to_owned();
    let edited = async {
        parser.finish(invalid_edit_fields(&edit))?;
        // Read the worker before the edit: the edit fails unless this is still its revision.
        let before = app.services.workers.worker_for(&principal, &id).await?;
        if before.allowed_networks != parse_networks(field(&fields, "networks")) {
            app.services.access.require_recent_auth(&principal)?;
        }
        let after = app
            .services
            .workers
            .edit_worker(caller_from_principal(&principal), id.clone(), edit, Some(vec![submitted_revision]))
            .await?;
        Ok::<_, ServiceError>((before, revision(&after)))
    };
    Ok(match edited.await {
        Err(error) => {
            redirect_with_problem(&app, &format!("/admin/workers/{id}/edit"), FormName::Worker, error, fields)
        }
        Ok((before, after)) if before.revision == after => redirect_done(&app, &id, Ok(FlashNotice::WorkerChanged)),
        Ok((before, after)) => {
            redirect_undoable(&app, &id, Ok((FlashNotice::WorkerChanged, undo_edit(&before, after))))
        }
    })
}

/// `POST /ui/workers/{id}/token`
pub async fn rotate_token(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let overlap_seconds = field(&fields, "overlap_seconds").and_then(|text| text.parse().ok());
    let rotate = RotateToken { lifetime: parse_token_lifetime(&fields), overlap_seconds };
    Ok(match app.services.workers.rotate_token(caller_from_principal(&principal), id.clone(), rotate).await {
        Err(error) => redirect_done(&app, &id, Err(error)),
        Ok(rotated) => redirect_to_new_token(&app, &server_address(&app, scheme, &headers), rotated),
    })
}

/// Redirects to the worker's page, which shows the new token and the methods to start an agent with it.
fn redirect_to_new_token(app: &AppState, address: &ServerAddress, created: WorkerWithToken) -> Response {
    let persistent = created.worker.kind != Some(WorkerKind::Ephemeral);
    let worker = created_worker_view(address, created);
    let page = format!("/admin/workers/{}", worker.worker_id);
    let start_methods = start_methods(&worker, persistent, address);
    redirect_with_flash(app, &page, Flash::Created { worker, start_methods })
}

/// `POST /ui/workers/{id}/settle`: acknowledges the alert about two agents with one token.
pub async fn resolve_token_conflict(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let edit = EditWorker { settle_token_conflict: true, ..EditWorker::default() };
    let resolved = app.services.workers.edit_worker(caller_from_principal(&principal), id.clone(), edit, None).await;
    Ok(redirect_done(&app, &id, resolved.map(|_| FlashNotice::TokenConflictResolved)))
}

/// Parses the lifetime of a token in days; empty is unlimited. Anything but a number becomes 0,
/// which is rejected as out of range.
fn parse_token_lifetime(fields: &FormFields) -> TokenLifetime {
    let days = field(fields, "expires_in_days").map(|text| text.parse::<u32>().unwrap_or(0));
    TokenLifetime { expires_in_seconds: days.map(|days| days.saturating_mul(86_400)), ..TokenLifetime::default() }
}

/// Splits networks at line breaks, spaces and commas.
fn parse_networks(text: Option<&str>) -> Vec<String> {
    let parts = text.unwrap_or_default().split([',', ' ', '\n', '\r', '\t']);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `POST /ui/workers/{id}/drain`
pub async fn drain(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Form(fields): Form<FormFields>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let drained = app
        .services
        .workers
        .drain_worker(caller_from_principal(&principal), id.clone(), parse_drain_terms(&fields))
        .await;
    Ok(redirect_undoable(&app, &id, drained.map(|_| (FlashNotice::WorkerDraining, Undo::drain(&id)))))
}

/// Parses the reason of a drain, and the minutes for which running jobs may continue. Anything but a
/// number is rejected as out of range.
pub fn parse_drain_terms(fields: &FormFields) -> DrainWorker {
    let seconds = |minutes: &str| minutes.parse::<u32>().map_or(u32::MAX, |minutes| minutes.saturating_mul(60));
    DrainWorker {
        reason: field(fields, "reason").map(str::to_owned),
        deadline_seconds: field(fields, "deadline_minutes").map(seconds),
    }
}

/// `POST /ui/workers/{id}/resume`
pub async fn resume(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let resumed = app.services.workers.resume_worker(caller_from_principal(&principal), id.clone()).await;
    Ok(redirect_undoable(&app, &id, resumed.map(|_| (FlashNotice::WorkerResumed, Undo::resume(&id)))))
}

/// `POST /ui/workers/{id}/delete`
pub async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    Ok(match app.services.workers.delete_worker(caller_from_principal(&principal), id.clone()).await {
        Ok(()) => redirect_with_flash(&app, "/admin/workers", Flash::Notice { code: FlashNotice::WorkerDeleted }),
        Err(error) => redirect_done(&app, &id, Err(error)),
    })
}

fn redirect_done(app: &AppState, id: &WorkerId, outcome: Result<FlashNotice, ServiceError>) -> Response {
    redirect_outcome(app, id, outcome.map(|code| Flash::Notice { code }))
}

fn redirect_undoable(app: &AppState, id: &WorkerId, outcome: Result<(FlashNotice, Undo), ServiceError>) -> Response {
    redirect_outcome(app, id, outcome.map(|(code, undo)| Flash::Done { code, undo }))
}

fn redirect_outcome(app: &AppState, id: &WorkerId, outcome: Result<Flash, ServiceError>) -> Response {
    let page = format!("/admin/workers/{id}");
    match outcome {
        Ok(flash) => redirect_with_flash(app, &page, flash),
        Err(error) => redirect_with_problem(app, &page, FormName::Action, error, FormFields::new()),
    }
}
