//! `GET /api/queue/{id}/logs?follow=1`: a log as it grows, as Server-Sent Events.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use app::domain::ids::{Attempt, JobId};
use app::protocol::queue::LogChunk;
use app::protocol::topic::Topic;
use axum::Extension;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;

use crate::http::events::{STREAM_HEADERS, goodbye, shut};
use crate::service::access::Admission;
use crate::service::logs::MAX_PIECE;
use crate::service::shares::Share;
use crate::state::App;

/// So often it is looked without a bell: what another server takes in does not ring here.
const LOOK: Duration = Duration::from_secs(5);

/// Each event is a piece as it can be asked for, and its id is the offset at which to resume. The stream ends when the
/// attempt has, and all of its log was sent, or when whoever reads may not any more.
pub fn follow(
    app: App,
    job: JobId,
    attempt: Attempt,
    offset: u64,
    admission: Option<Extension<Admission>>,
    share: Share,
) -> impl IntoResponse {
    let pieces = Sse::new(pieces(app, job, attempt, offset, admission, share));
    (STREAM_HEADERS, pieces.keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

fn pieces(
    app: App,
    job: JobId,
    attempt: Attempt,
    mut offset: u64,
    admission: Option<Extension<Admission>>,
    share: Share,
) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let _share = share;
        let core = &app.core;
        let mut shut = pin!(shut(&app, admission));
        let (mut log, mut life) = (core.hub.follow(&Topic::Log(job.clone())), core.hub.follow(&Topic::Job(job.clone())));
        loop {
            log.mark_unchanged();
            life.mark_unchanged();
            // Asked before the log is read: what came before the end is then read after it.
            let Ok(over) = core.attempt_is_over(&job, attempt).await else { break };
            while let Ok(piece) = core.read_log(&job, Some(attempt), Some(offset), MAX_PIECE).await
                && piece.next_offset > offset
            {
                offset = piece.next_offset;
                yield Ok(encoded(&piece));
            }
            if over {
                break;
            }
            tokio::select! {
                () = &mut shut => break,
                rung = log.changed() => if rung.is_err() { break },
                rung = life.changed() => if rung.is_err() { break },
                () = tokio::time::sleep(LOOK) => {}
                () = app.shutdown.cancelled() => {
                    yield Ok(goodbye());
                    break;
                }
            }
        }
    }
}

fn encoded(piece: &LogChunk) -> Event {
    let data = serde_json::to_string(piece).expect("plain fields");
    Event::default().id(piece.next_offset.to_string()).data(data)
}
