//! `simpletuner jobs logs`: what there is, or what comes until the job ends.

use std::time::Duration;

use app::domain::ids::Attempt;
use app::protocol::queue::{JobView, LogChunk};
use app::protocol::status::JobStatus;
use clap::Args;
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::json;
use sse_stream::SseStream;

use crate::boot::exit::Exit;
use crate::cli::client::{Call, Client, Failure};
use crate::cli::operate::read;
use crate::cli::screen::{Form, Screen};

/// How much is read at once, in bytes.
const PIECE: u32 = 1 << 20;
/// A stream that is silent for so long is dead: the server sends something each 15 s.
const SILENCE: Duration = Duration::from_secs(40);

/// See the module.
#[derive(Debug, Clone, Args)]
pub struct Logs {
    #[command(flatten)]
    which: super::Which,
    /// Go on until the job ends; the exit code is 0 if it completed, and 1 if it failed or was cancelled.
    #[arg(long, short)]
    follow: bool,
    /// Of this attempt [default: the newest].
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

/// Does it.
pub async fn run(logs: Logs, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let job = &logs.which.job;
    if logs.follow {
        return follow(job, logs.attempt, client, screen).await;
    }
    let mut place = Place { attempt: logs.attempt.map(Attempt), offset: 0 };
    let mut text = String::new();
    loop {
        let chunk = piece(job, place, client).await?;
        if screen.form == Form::Json {
            text.push_str(&chunk.text);
        } else {
            screen.bytes(chunk.text.as_bytes())?;
        }
        // The size may grow meanwhile; what is there when it is asked is all that is wanted.
        if chunk.next_offset >= chunk.size || chunk.next_offset == place.offset {
            let whole = LogChunk { offset: 0, text, ..chunk };
            return if screen.form == Form::Json { screen.line(format!("{:#}", json!(whole))) } else { Ok(()) };
        }
        place = Place { attempt: Some(chunk.attempt), offset: chunk.next_offset };
    }
}

/// Up to where a log was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// None for the newest, before anything of it was seen.
    attempt: Option<Attempt>,
    offset: u64,
}

/// Prints a log as it grows, of one attempt or of all that come, and ends as the job does.
pub async fn follow(job: &str, attempt: Option<u32>, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let mut place = Place { attempt: attempt.map(Attempt), offset: 0 };
    // The first question finds out whether there is such a job, and a server at all.
    client.get(&["queue", job]).await?;
    let mut was_broken = false;
    loop {
        let streamed = stream(job, &mut place, client, screen).await?;
        let known = match streamed {
            Ok(()) => client.get(&["queue", job]).await,
            Err(failure) => Err(failure),
        };
        let broken = match known {
            Ok(document) => {
                let view: JobView = read(&document)?;
                if attempt.is_none() && place.attempt.is_some_and(|seen| seen < view.attempt) {
                    rest(job, &mut place, client, screen).await?;
                    screen.say(format!("-- attempt {} --", view.attempt))?;
                    place = Place { attempt: Some(view.attempt), offset: 0 };
                    continue;
                }
                if view.status.is_terminal() || attempt.is_some_and(|one| Attempt(one) < view.attempt) {
                    rest(job, &mut place, client, screen).await?;
                    return ended(&view, screen);
                }
                false
            }
            Err(Failure::Problem(problem)) if !Failure::Problem(problem.clone()).passes() => {
                return Err(Failure::Problem(problem).into());
            }
            Err(failure) => {
                if !was_broken {
                    screen.say(format!("-- {}; going on when it answers --", Exit::from(failure).sentence()))?;
                }
                true
            }
        };
        was_broken = broken;
        tokio::time::sleep(client.pause).await;
    }
}

/// Prints what one connection brings. The inner error is the connection's, the outer one the screen's.
async fn stream(
    job: &str,
    place: &mut Place,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<Result<(), Failure>, Exit> {
    let query = json!({"follow": 1, "attempt": place.attempt, "offset": place.offset});
    let answer = match client.open(Call::new(Method::GET, &["queue", job, "logs"]).query(&query)).await {
        Ok(answer) => answer,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut events = SseStream::from_bytes_stream(answer.bytes_stream());
    let broke = || Failure::Broken("the connection broke".to_owned());
    loop {
        let data = match tokio::time::timeout(SILENCE, events.next()).await {
            Ok(None) => return Ok(Ok(())),
            Err(_) | Ok(Some(Err(_))) => return Ok(Err(broke())),
            Ok(Some(Ok(event))) => event.data,
        };
        let Some(chunk) = data.and_then(|data| serde_json::from_str::<LogChunk>(&data).ok()) else { continue };
        show(&chunk, place, screen)?;
    }
}

/// Prints what a broken stream, or the end of an attempt, has left.
async fn rest(job: &str, place: &mut Place, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    loop {
        let before = place.offset;
        let chunk = piece(job, *place, client).await?;
        show(&chunk, place, screen)?;
        if place.offset == before {
            return Ok(());
        }
    }
}

/// Prints a piece, if it is the next one.
fn show(chunk: &LogChunk, place: &mut Place, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let attempt = *place.attempt.get_or_insert(chunk.attempt);
    if chunk.attempt == attempt && chunk.offset == place.offset && chunk.next_offset > place.offset {
        match screen.form {
            Form::Json => screen.line(json!(chunk).to_string())?,
            Form::Words | Form::Ids => screen.bytes(chunk.text.as_bytes())?,
        }
        place.offset = chunk.next_offset;
    }
    Ok(())
}

async fn piece(job: &str, place: Place, client: &Client) -> Result<LogChunk, Exit> {
    let query = json!({"attempt": place.attempt, "offset": place.offset, "limit": PIECE});
    let document = client.json(Call::new(Method::GET, &["queue", job, "logs"]).query(&query)).await?;
    read(&document)
}

/// Says how a job ended, also by the exit code.
fn ended(job: &JobView, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let why = job.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    screen.say(format!("-- {} {}{why} --", job.job_id, job.status.as_str()))?;
    match job.status {
        JobStatus::Failed | JobStatus::Cancelled => Err(Exit::silent(1)),
        _ => Ok(()),
    }
}
