//! `simpletuner jobs logs`: prints the log so far, or follows it until the job ends; or searches the logs of many jobs.

use std::time::Duration;

use app::domain::ids::AttemptNumber;
use app::protocol::jobs::log_search::{JobLogMatches, JobLogsPage, JobLogsQuery};
use app::protocol::jobs::{JobView, LogChunk};
use app::protocol::logs::{LogLine, LogLines, LogLinesQuery};
use app::protocol::status::JobOutcome;
use clap::Args;
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::json;
use sse_stream::SseStream;

use super::strip_control;
use crate::cli::client::{ApiRequest, Client, ClientError};
use crate::cli::output::{Output, OutputFormat};
use crate::cli::run::parse_value;
use crate::exit::ExitError;

/// Chunk size in bytes.
const CHUNK_BYTES: u32 = 1 << 20;
/// A stream that is silent this long is dead: the server sends an event every 15 s.
const STREAM_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// Job ID; with --search, a search for jobs such as `config:flux* status:failed` [default: all].
    #[arg(value_name = "JOB", required_unless_present = "search")]
    job: Option<String>,
    /// Search the logs of jobs for this text, the newest jobs first; case matters only if it has capitals.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["follow", "attempt"])]
    search: Option<String>,
    /// With --search: the text is a regular expression.
    #[arg(long, requires = "search")]
    regex: bool,
    /// Follow until the job ends (exit code 0 if completed, 1 if failed or cancelled).
    #[arg(long, short)]
    follow: bool,
    /// Print when each line arrived at the server, in UTC; lines are as a terminal shows them in the end, and their number of
    /// bytes is limited.
    #[arg(long, conflicts_with_all = ["follow", "search"])]
    timestamps: bool,
    /// Attempt number [default: latest].
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

pub async fn run(logs: LogsArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let job = logs.job.unwrap_or_default();
    if let Some(q) = logs.search {
        let jobs = Some(job).filter(|jobs| !jobs.is_empty());
        let query = JobLogsQuery { q, jobs, regex: logs.regex, ..JobLogsQuery::default() };
        return search(&query, client, output).await;
    }
    let job = job.as_str();
    if logs.follow {
        return follow(job, logs.attempt, client, output).await;
    }
    if logs.timestamps {
        return print_lines(job, logs.attempt, client, output).await;
    }
    let mut position = LogPosition { attempt: logs.attempt.map(AttemptNumber), offset: 0 };
    let mut text = String::new();
    loop {
        let chunk = fetch_chunk(job, position, client).await?;
        if output.format == OutputFormat::Json {
            text.push_str(&chunk.text);
        } else {
            output.print_bytes(chunk.text.as_bytes())?;
        }
        // The log may grow while it is read; only what existed at the start is printed.
        if chunk.next_offset >= chunk.size || chunk.next_offset == position.offset {
            let full_log = LogChunk { offset: 0, text, ..chunk };
            return if output.format == OutputFormat::Json {
                output.print_line(format!("{:#}", json!(full_log)))
            } else {
                Ok(())
            };
        }
        position = LogPosition { attempt: Some(chunk.attempt), offset: chunk.next_offset };
    }
}

/// Prints the lines of a log, each after the time when it arrived, as far as that was recorded.
async fn print_lines(
    job: &str,
    attempt: Option<u32>,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let mut query =
        LogLinesQuery { attempt, from: Some(1), limit: Some(1_000), times: true, ..LogLinesQuery::default() };
    loop {
        let path = ["queue", job, "logs", "lines"];
        let document = client.send_json(ApiRequest::new(Method::GET, &path).query(&query)).await?;
        let page: LogLines = parse_value(&document)?;
        for line in &page.lines {
            match output.format {
                OutputFormat::Json => output.print_line(json!(line).to_string())?,
                OutputFormat::Text | OutputFormat::Ids => output.print_line(timed_line(line))?,
            }
        }
        let next = page.from + page.lines.len() as u64;
        if page.lines.is_empty() || next > page.total {
            return Ok(());
        }
        (query.attempt, query.from) = (Some(page.attempt.0), Some(next));
    }
}

fn timed_line(line: &LogLine) -> String {
    let time = line.arrived_at.map(|at| at.to_string()[..19].to_owned() + "Z").unwrap_or_default();
    format!("{time:20} {}", line.text)
}

/// Prints the first matching lines of each job.
async fn search(query: &JobLogsQuery, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let document = client.list_all(&["queue", "logs", "search"], query, "jobs", None).await?;
    let found: JobLogsPage = parse_value(&document)?;
    let ids = found.jobs.iter().map(|found| found.job.job_id.to_string());
    output.print_document(&document, ids, |_| found.jobs.iter().map(format_matches).collect())
}

fn format_matches(JobLogMatches { job, matches, incomplete }: &JobLogMatches) -> String {
    let mut lines = vec![format!("{} {} (attempt {})", job.job_id, strip_control(&job.title()), job.attempt)];
    lines.extend(matches.iter().map(|found| format!("{:>8}: {}", found.line, strip_control(&found.text))));
    lines.extend(incomplete.then(|| "          (the log is too long to be searched to its end)".to_owned()));
    lines.join("\n") + "\n"
}

/// How far a log has been printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogPosition {
    /// `None` for the latest attempt, before any output.
    attempt: Option<AttemptNumber>,
    offset: u64,
}

/// Prints a log as it grows, of one attempt or of all, until the job ends.
pub async fn follow(
    job: &str,
    attempt: Option<u32>,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let mut position = LogPosition { attempt: attempt.map(AttemptNumber), offset: 0 };
    // The first request checks that the job and the server exist.
    client.get(&["queue", job]).await?;
    let mut was_disconnected = false;
    loop {
        let result = print_stream(job, &mut position, client, output).await?;
        let document = match result {
            Ok(()) => client.get(&["queue", job]).await,
            Err(failure) => Err(failure),
        };
        let is_disconnected = match document {
            Ok(document) => {
                let view: JobView = parse_value(&document)?;
                if attempt.is_none() && position.attempt.is_some_and(|number| number < view.attempt) {
                    print_remaining(job, &mut position, client, output).await?;
                    output.print_info(format!("-- attempt {} --", view.attempt))?;
                    position = LogPosition { attempt: Some(view.attempt), offset: 0 };
                    continue;
                }
                if view.status.is_terminal() || attempt.is_some_and(|number| AttemptNumber(number) < view.attempt) {
                    print_remaining(job, &mut position, client, output).await?;
                    return report_job_end(&view, output);
                }
                false
            }
            Err(ClientError::Problem(problem)) if !ClientError::Problem(problem.clone()).is_transient() => {
                return Err(ClientError::Problem(problem).into());
            }
            Err(failure) => {
                if !was_disconnected {
                    output.print_info(format!("-- {}; retrying --", ExitError::from(failure).message()))?;
                }
                true
            }
        };
        was_disconnected = is_disconnected;
        tokio::time::sleep(client.retry_delay).await;
    }
}

/// Prints the events of one connection. The inner error is that of the connection, the outer one that of the output.
async fn print_stream(
    job: &str,
    position: &mut LogPosition,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<Result<(), ClientError>, ExitError> {
    let query = json!({"follow": 1, "attempt": position.attempt, "offset": position.offset});
    let response = match client.stream(ApiRequest::new(Method::GET, &["queue", job, "logs"]).query(&query)).await {
        Ok(response) => response,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut events = SseStream::from_bytes_stream(response.bytes_stream());
    let connection_error = || ClientError::Interrupted("connection lost".to_owned());
    loop {
        let data = match tokio::time::timeout(STREAM_TIMEOUT, events.next()).await {
            Ok(None) => return Ok(Ok(())),
            Err(_) | Ok(Some(Err(_))) => return Ok(Err(connection_error())),
            Ok(Some(Ok(event))) => event.data,
        };
        let Some(chunk) = data.and_then(|data| serde_json::from_str::<LogChunk>(&data).ok()) else { continue };
        print_chunk(&chunk, position, output)?;
    }
}

/// Prints what remains after a broken stream or the end of an attempt.
async fn print_remaining(
    job: &str,
    position: &mut LogPosition,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    loop {
        let before = position.offset;
        let chunk = fetch_chunk(job, *position, client).await?;
        print_chunk(&chunk, position, output)?;
        if position.offset == before {
            return Ok(());
        }
    }
}

/// Prints a chunk if it is the next one.
fn print_chunk(chunk: &LogChunk, position: &mut LogPosition, output: &mut Output<'_>) -> Result<(), ExitError> {
    let attempt = *position.attempt.get_or_insert(chunk.attempt);
    if chunk.attempt == attempt && chunk.offset == position.offset && chunk.next_offset > position.offset {
        match output.format {
            OutputFormat::Json => output.print_line(json!(chunk).to_string())?,
            OutputFormat::Text | OutputFormat::Ids => output.print_bytes(chunk.text.as_bytes())?,
        }
        position.offset = chunk.next_offset;
    }
    Ok(())
}

async fn fetch_chunk(job: &str, position: LogPosition, client: &Client) -> Result<LogChunk, ExitError> {
    let query = json!({"attempt": position.attempt, "offset": position.offset, "limit": CHUNK_BYTES});
    let document = client.send_json(ApiRequest::new(Method::GET, &["queue", job, "logs"]).query(&query)).await?;
    parse_value(&document)
}

/// Prints how a job ended and sets the exit code.
fn report_job_end(job: &JobView, output: &mut Output<'_>) -> Result<(), ExitError> {
    let reason = job.error.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    output.print_info(format!("-- {} {}{reason} --", job.job_id, job.status.as_str()))?;
    match job.status.outcome() {
        JobOutcome::NotCompleted if job.status.is_terminal() => Err(ExitError::silent(1)),
        JobOutcome::Open | JobOutcome::Completed | JobOutcome::NotCompleted => Ok(()),
    }
}
