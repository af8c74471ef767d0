//! Create, edit, drain, resume, delete; a new token, and the end of an alarm.

use app::domain::ids::WorkerId;
use app::domain::worker::Kind;
use app::protocol::status::WorkerType;
use app::protocol::workers::{CreateWorker, DrainWorker, EditWorker, RotateToken, TokenLife};
use app::ui::edited::undone;
use app::ui::flash::{Flash, FormName, Notice, Undo};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Form};

use super::{Fields, answer, field, gathered, labels, refused, row_labels};
use crate::http::admin::{created_view, worker_id};
use crate::http::arrival::Scheme;
use crate::http::problem::ApiError;
use crate::http::request::caller;
use crate::http::session::{Address, address};
use crate::http::ui::ways::ways;
use crate::service::access::Person;
use crate::service::refusal::Refusal;
use crate::service::workers::{Created, revision};
use crate::state::App;

/// `POST /ui/workers`
pub async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let fields = gathered(pairs);
    let create = CreateWorker {
        name: field(&fields, "name").unwrap_or_default().to_owned(),
        worker_type: field(&fields, "worker_type").and_then(WorkerType::parse),
        labels: labels(field(&fields, "labels")),
        ignore_reported_labels: false,
        refuse_older_agents: false,
        allowed_networks: networks(field(&fields, "networks")),
        life: life(&fields),
    };
    match app.core.create_worker(caller(&person), create).await {
        Err(refusal) => refused(&app, "/admin/workers/new", FormName::Worker, refusal, fields),
        Ok(created) => shown_once(&app, &address(&app, scheme, &headers), created),
    }
}

/// `POST /ui/workers/{id}/edit`
pub async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let (id, fields) = (worker_id(&id)?, gathered(pairs));
    let edit = EditWorker {
        name: Some(field(&fields, "name").unwrap_or_default().to_owned()),
        worker_type: field(&fields, "worker_type").and_then(WorkerType::parse),
        labels: Some(row_labels(field(&fields, "labels"))),
        ignore_reported_labels: Some(fields.contains_key("ignore_reported_labels")),
        refuse_older_agents: Some(fields.contains_key("refuse_older_agents")),
        allowed_networks: Some(networks(field(&fields, "networks"))),
        settle_token_conflict: false,
    };
    let seen = field(&fields, "revision").unwrap_or_default().to_owned();
    let edited = async {
        // Who edits what is of this revision finds what was before.
        let before = app.core.worker_page(&id).await?;
        if before.allowed_networks != networks(field(&fields, "networks")) {
            app.core.need_proof(&person)?;
        }
        let after = app.core.edit_worker(caller(&person), id.clone(), edit, Some(vec![seen])).await?;
        Ok::<_, Refusal>((before, revision(&after)))
    };
    Ok(match edited.await {
        Err(refusal) => refused(&app, &format!("/admin/workers/{id}/edit"), FormName::Worker, refusal, fields),
        Ok((before, after)) if before.revision == after => done(&app, &id, Ok(Notice::WorkerChanged)),
        Ok((before, after)) => undoable(&app, &id, Ok((Notice::WorkerChanged, undone(&before, after)))),
    })
}

/// `POST /ui/workers/{id}/token`
pub async fn rotate(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let overlap_seconds = field(&fields, "overlap_seconds").and_then(|text| text.parse().ok());
    let rotate = RotateToken { life: life(&fields), overlap_seconds };
    Ok(match app.core.rotate_token(caller(&person), id.clone(), rotate).await {
        Err(refusal) => done(&app, &id, Err(refusal)),
        Ok(rotated) => shown_once(&app, &address(&app, scheme, &headers), rotated),
    })
}

/// To the worker's page, which shows the new token and the ways to start an agent with it.
fn shown_once(app: &App, at: &Address, created: Created) -> Response {
    let persistent = created.worker.kind != Some(Kind::Ephemeral);
    let worker = created_view(at, created);
    let page = format!("/admin/workers/{}", worker.worker_id);
    let ways = ways(&worker, persistent, at);
    answer(app, &page, Flash::Created { worker, ways })
}

/// `POST /ui/workers/{id}/settle`: somebody has seen to the alarm about two agents.
pub async fn settle(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let edit = EditWorker { settle_token_conflict: true, ..EditWorker::default() };
    let settled = app.core.edit_worker(caller(&person), id.clone(), edit, None).await;
    Ok(done(&app, &id, settled.map(|_| Notice::AlarmSettled)))
}

/// When a token ends, from a number of days; empty for never. What is no number is refused as out of its range.
fn life(fields: &Fields) -> TokenLife {
    let days = field(fields, "expires_in_days").map(|text| text.parse::<u32>().unwrap_or(0));
    TokenLife { expires_in_seconds: days.map(|days| days.saturating_mul(86_400)), ..TokenLife::default() }
}

/// Networks as people type them, a line, a blank or a comma each.
fn networks(text: Option<&str>) -> Vec<String> {
    let parts = text.unwrap_or_default().split([',', ' ', '\n', '\r', '\t']);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `POST /ui/workers/{id}/drain`
pub async fn drain(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let drained = app.core.drain_worker(caller(&person), id.clone(), terms(&fields)).await;
    Ok(undoable(&app, &id, drained.map(|_| (Notice::WorkerDraining, Undo::drain(&id)))))
}

/// Why a worker is to drain, and for how many minutes what runs may go on. What is no number is refused as too many.
pub fn terms(fields: &Fields) -> DrainWorker {
    let seconds = |minutes: &str| minutes.parse::<u32>().map_or(u32::MAX, |minutes| minutes.saturating_mul(60));
    DrainWorker {
        reason: field(fields, "reason").map(str::to_owned),
        deadline_seconds: field(fields, "deadline_minutes").map(seconds),
    }
}

/// `POST /ui/workers/{id}/resume`
pub async fn resume(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    let resumed = app.core.resume_worker(caller(&person), id.clone()).await;
    Ok(undoable(&app, &id, resumed.map(|_| (Notice::WorkerResumed, Undo::resume(&id)))))
}

/// `POST /ui/workers/{id}/delete`
pub async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = worker_id(&id)?;
    Ok(match app.core.delete_worker(caller(&person), id.clone()).await {
        Ok(()) => answer(&app, "/admin/workers", Flash::Notice { code: Notice::WorkerDeleted }),
        Err(refusal) => done(&app, &id, Err(refusal)),
    })
}

fn done(app: &App, id: &WorkerId, outcome: Result<Notice, Refusal>) -> Response {
    said(app, id, outcome.map(|code| Flash::Notice { code }))
}

fn undoable(app: &App, id: &WorkerId, outcome: Result<(Notice, Undo), Refusal>) -> Response {
    said(app, id, outcome.map(|(code, undo)| Flash::Done { code, undo }))
}

fn said(app: &App, id: &WorkerId, outcome: Result<Flash, Refusal>) -> Response {
    let page = format!("/admin/workers/{id}");
    match outcome {
        Ok(flash) => answer(app, &page, flash),
        Err(refusal) => refused(app, &page, FormName::Action, refusal, Fields::new()),
    }
}
