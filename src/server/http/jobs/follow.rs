//! `GET /api/queue/{id}/logs?follow=1`: streams a log as it grows, as Server-Sent Events.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use app::domain::ids::{AttemptNumber, JobId};
use app::protocol::jobs::LogChunk;
use app::protocol::topic::Topic;
use axum::Extension;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;

use crate::http::events::{STREAM_HEADERS, shutdown_event, wait_until_revoked};
use crate::http::state::AppState;
use crate::service::access::per_user_limit::PerUserPermit;
use crate::service::auth_grant::AuthGrant;
use crate::service::logs::MAX_READ_BYTES;

/// Polls without a change notification: those of other servers do not arrive here.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Each event is a chunk, and its id is the offset to resume from. The stream ends when the attempt has ended and its
/// whole log was sent, or when the reader's authorization is revoked.
pub fn follow(
    app: AppState,
    job: JobId,
    attempt: AttemptNumber,
    offset: u64,
    grant: Option<Extension<AuthGrant>>,
    permit: PerUserPermit,
) -> impl IntoResponse {
    let chunks = Sse::new(chunk_stream(app, job, attempt, offset, grant, permit));
    (STREAM_HEADERS, chunks.keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

fn chunk_stream(
    app: AppState,
    job: JobId,
    attempt: AttemptNumber,
    mut offset: u64,
    grant: Option<Extension<AuthGrant>>,
    permit: PerUserPermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let _permit = permit;
        let services = &app.services;
        let mut revoked = pin!(wait_until_revoked(&app, grant));
        let (mut log_changes, mut status_changes) = (services.context.notifier.subscribe_topic(&Topic::Log(job.clone())), services.context.notifier.subscribe_topic(&Topic::Job(job.clone())));
        loop {
            log_changes.mark_unchanged();
            status_changes.mark_unchanged();
            // Checked before the log is read, so that everything before the end is included.
            let Ok(has_ended) = services.logs.is_attempt_over(&job, attempt).await else { break };
            while let Ok(chunk) = services.logs.read_log(&job, Some(attempt), Some(offset), MAX_READ_BYTES).await
                && chunk.next_offset > offset
            {
                offset = chunk.next_offset;
                yield Ok(to_event(&chunk));
            }
            if has_ended {
                break;
            }
            tokio::select! {
                () = &mut revoked => break,
                change = log_changes.changed() => if change.is_err() { break },
                change = status_changes.changed() => if change.is_err() { break },
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = app.shutdown.cancelled() => {
                    yield Ok(shutdown_event());
                    break;
                }
            }
        }
    }
}

fn to_event(chunk: &LogChunk) -> Event {
    let data = serde_json::to_string(chunk).expect("plain fields");
    Event::default().id(chunk.next_offset.to_string()).data(data)
}
