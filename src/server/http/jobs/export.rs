//! All jobs of a list, as CSV and as JSON lines: page after page, while the client reads.

use std::io;
use std::sync::Arc;

use app::domain::job_search::columns::JobListColumns;
use app::protocol::jobs::{JobView, JobsPage, JobsQuery};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::http::edge::csv::{csv_field, csv_response};
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc, schema_of};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

/// The number of jobs that are read at a time.
const PAGE_SIZE: u32 = 1_000;

pub const CSV: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "One line per job, after a header line.", ContentDoc::Bytes(&["text/csv"]))],
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("exportJobs", "Exports all jobs that match the filters as CSV.")
};

pub const JSON_LINES: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "The jobs.", ContentDoc::Lines(schema_of::<JobView>))],
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("exportJobsAsJson", "Exports all jobs that match the filters as JSON lines.")
};

pub async fn csv(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobsQuery>,
) -> Result<Response, ApiError> {
    let columns = query.columns.as_deref().and_then(JobListColumns::parse).unwrap_or_default();
    let columns = Arc::<[String]>::from(columns.value_names());
    let names = [FIELDS.to_owned()].into_iter().chain(columns.iter().map(|name| csv_field(name)));
    let header = names.collect::<Vec<_>>().join(",") + "\r\n";
    let header = stream::once(async move { Ok(Bytes::from(header)) });
    let lines = lines(app, principal, query, move |job| csv_line(job, &columns)).await?;
    Ok(csv_response("jobs.csv", Body::from_stream(header.chain(lines))))
}

pub async fn json_lines(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobsQuery>,
) -> Result<Response, ApiError> {
    let line = |job: &JobView| serde_json::to_string(job).unwrap_or_default() + "\n";
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"jobs.jsonl\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(lines(app, principal, query, line).await?)).into_response())
}

/// The lines of all pages. A problem of the first one is the response; one of a later page aborts it.
async fn lines(
    app: AppState,
    principal: Principal,
    query: JobsQuery,
    line: impl Fn(&JobView) -> String + Send + Clone + 'static,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send, ApiError> {
    let query = JobsQuery { limit: Some(PAGE_SIZE), ..query };
    let first = app.services.jobs.jobs_page(&principal, &query).await?;
    let format_page = move |page: &JobsPage| Bytes::from(page.jobs.iter().map(&line).collect::<String>());
    let (text, next) = (format_page(&first), first.next_cursor);
    let later = stream::try_unfold(next, move |cursor| {
        let (app, principal, query) =
            (app.clone(), principal.clone(), JobsQuery { cursor: cursor.clone(), ..query.clone() });
        let format_page = format_page.clone();
        async move {
            if cursor.is_none() {
                return Ok(None);
            }
            let page = app.services.jobs.jobs_page(&principal, &query).await;
            let page = page.map_err(|error| {
                tracing::error!(?error, "jobs: export aborted");
                io::Error::other("database error")
            })?;
            Ok(Some((format_page(&page), page.next_cursor)))
        }
    });
    Ok(stream::once(async { Ok(text) }).chain(later))
}

const FIELDS: &str = "id,name,config,revision,number,tags,user,status,error,worker,gpus,priority,attempts,submitted_at,\
     started_at,ended_at,step,epoch,loss,learning_rate";

/// The fields of a job, and then its values in these columns.
fn csv_line(job: &JobView, columns: &[String]) -> String {
    let text = |text: &Option<String>| csv_field(text.as_deref().unwrap_or_default());
    let progress = job.progress.as_ref();
    let fields = [
        csv_field(job.job_id.as_str()),
        text(&job.name),
        csv_field(&job.config_name),
        job.config_revision.to_string(),
        optional(job.number),
        csv_field(&job.tags.iter().map(String::as_str).collect::<Vec<_>>().join("; ")),
        csv_field(&job.submitted_by),
        job.status.as_str().to_owned(),
        text(&job.error),
        text(&job.worker_name),
        optional(job.gpu_count),
        job.priority.to_string(),
        job.attempt.to_string(),
        job.submitted_at.to_string(),
        optional(job.started_at),
        optional(job.ended_at),
        optional(progress.map(|progress| progress.step)),
        optional(progress.and_then(|progress| progress.epoch)),
        optional(progress.and_then(|progress| progress.loss)),
        optional(progress.and_then(|progress| progress.learning_rate)),
    ];
    let value = |column: &String| match job.values.get(column) {
        Some(Value::String(text)) => csv_field(text),
        other => optional(other),
    };
    fields.into_iter().chain(columns.iter().map(value)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
