//! The list of workers as a table for other programs.

use app::protocol::status::WorkerType;
use app::protocol::workers::{WorkerView, WorkersQuery};
use axum::extract::State;
use axum::response::Response;

use crate::http::address::Query;
use crate::http::csv::{self, field};
use crate::http::openapi::doc::{Answer, Content, Doc};
use crate::http::problem::ApiError;
use crate::state::App;

pub const EXPORT: Doc = Doc {
    answers: &[Answer::with(200, "A line for each worker, under a line of names.", Content::Bytes(&["text/csv"]))],
    problems: &["invalid_search", "out_of_range"],
    ..Doc::of("exportWorkers", "The list of workers, as comma-separated values.")
};

pub async fn export(State(app): State<App>, Query(query): Query<WorkersQuery>) -> Result<Response, ApiError> {
    let page = app.core.workers_page(&query).await?;
    let names = "id,name,status,type,gpus,gpu,labels,host,agent_version,tls_verify,last_heartbeat,jobs\r\n";
    let lines = std::iter::once(names.to_owned()).chain(page.workers.iter().map(line));
    Ok(csv::file("workers.csv", lines.collect()))
}

fn line(worker: &WorkerView) -> String {
    let labels: Vec<String> = worker.labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let jobs: Vec<&str> = worker.jobs.iter().map(|job| job.job_id.as_str()).collect();
    let text = |text: &Option<String>| field(text.as_deref().unwrap_or_default());
    let fields = [
        field(worker.id.as_str()),
        field(&worker.name),
        worker.status.as_str().to_owned(),
        worker.worker_type.map(WorkerType::as_str).unwrap_or_default().to_owned(),
        worker.gpu_count.to_string(),
        text(&worker.gpu_name),
        field(&labels.join("; ")),
        text(&worker.hostname),
        text(&worker.agent_version),
        worker.tls_verify.map(|on| on.to_string()).unwrap_or_default(),
        worker.last_heartbeat.map(|at| at.to_string()).unwrap_or_default(),
        field(&jobs.join("; ")),
    ];
    fields.join(",") + "\r\n"
}
