//! The list of workers as CSV.

use app::protocol::status::WorkerType;
use app::protocol::workers::{WorkerView, WorkersQuery};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use crate::http::edge::csv;
use crate::http::edge::csv::csv_field;
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

pub const EXPORT: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "One line per worker, after a header line.", ContentDoc::Bytes(&["text/csv"]))],
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("exportWorkers", "Exports the list of workers as CSV.")
};

pub async fn export(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<WorkersQuery>,
) -> Result<Response, ApiError> {
    let page = app.services.workers.workers_page(&principal, &query).await?;
    let names = "id,name,status,type,gpus,gpu,labels,host,agent_version,tls_verify,last_heartbeat,jobs\r\n";
    let lines = std::iter::once(names.to_owned()).chain(page.workers.iter().map(csv_line));
    Ok(csv::csv_response("workers.csv", lines.collect::<String>()))
}

fn csv_line(worker: &WorkerView) -> String {
    let labels: Vec<String> = worker.labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let jobs: Vec<&str> = worker.jobs.iter().map(|job| job.job_id.as_str()).collect();
    let text = |text: &Option<String>| csv_field(text.as_deref().unwrap_or_default());
    let fields = [
        csv_field(worker.id.as_str()),
        csv_field(&worker.name),
        worker.status.as_str().to_owned(),
        worker.worker_type.map(WorkerType::as_str).unwrap_or_default().to_owned(),
        worker.gpu_count.to_string(),
        text(&worker.gpu_name),
        csv_field(&labels.join("; ")),
        text(&worker.hostname),
        text(&worker.agent_version),
        worker.tls_verify.map(|on| on.to_string()).unwrap_or_default(),
        worker.last_heartbeat.map(|at| at.to_string()).unwrap_or_default(),
        csv_field(&jobs.join("; ")),
    ];
    fields.join(",") + "\r\n"
}
