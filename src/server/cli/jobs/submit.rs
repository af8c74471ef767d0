//! `simpletuner jobs submit`

use app::protocol::jobs::submit::{SubmitJobResponse, SubmitPreviewResponse};
use clap::Args;
use reqwest::Method;

use super::fields::SubmitFlags;
use super::{logs, print_submitted, queue_state_text, views};
use crate::cli::client::{ApiRequest, Client};
use crate::cli::output::Output;
use crate::cli::run::parse_value;
use crate::exit::ExitError;
use crate::random::{OsRandom, Random};
use crate::tokens::hex;

#[derive(Debug, Clone, Args)]
pub struct SubmitArgs {
    #[command(flatten)]
    pub job: SubmitFlags,
    /// Print its log until it ends; the exit code tells how.
    #[arg(long, short)]
    follow: bool,
    /// Idempotency key: submits with the same key create one job [default: a new key per command].
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub async fn run(submit: SubmitArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let job = submit.job.to_submit_job();
    // If the response was lost, the request is repeated and must not create a second job.
    let key = submit.idempotency_key.unwrap_or_else(|| hex(&<dyn Random>::bytes::<16>(&OsRandom)));
    let document =
        client.send_json(ApiRequest::new(Method::POST, &["queue", "submit"]).body(&job).idempotency_key(key)).await?;
    if job.dry_run {
        let preview: SubmitPreviewResponse = parse_value(&document)?;
        let worker_ids = preview.allocated_worker_id.iter().map(ToString::to_string).collect::<Vec<_>>();
        return output
            .print_document(&document, worker_ids, |screen| views::format_explanation(&preview.explanation, screen));
    }
    if !submit.follow {
        return print_submitted(&document, output);
    }
    let response: SubmitJobResponse = parse_value(&document)?;
    output.print_info(format!("{} {}", response.job_id, queue_state_text(&response)))?;
    logs::follow(response.job_id.as_str(), None, client, output).await
}
