//! A worker's stream, and its substitute for networks that do not let streams through.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use app::domain::ids::{Attempt, JobId};
use app::protocol::dispatch::WorkerEvent;
use app::protocol::topic::Topic;
use app::protocol::worker::{Desired, HeartbeatAnswer, StopReason};
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

use super::agent::actor;
use crate::clock::past;
use crate::http::address::Query;
use crate::http::events::{STREAM_HEADERS, goodbye};
use crate::http::openapi::doc::{Answer, Doc};
use crate::http::problem::ApiError;
use crate::http::request::caller_named;
use crate::service::agents::Listening;
use crate::service::contention::{host_at, stream_name};
use crate::service::keys::WorkerKey;
use crate::service::unit::Caller;
use crate::state::App;

/// At least so often something is sent, so that both ends know that the stream lives.
const PING: Duration = Duration::from_secs(15);
/// Stands where the number of a stream would: the worker asks instead of listening.
const POLLED: &str = "polled";
/// The longest wait of a long poll, in seconds.
const LONGEST_WAIT: u64 = 60;

/// See [`stream`].
pub const STREAM: Doc = Doc {
    detail: "Each connection is first told the whole desired state, so nothing is replayed. A newer stream of the worker \
             ends this one.",
    answers: &[Answer::events::<WorkerEvent>(
        &["job_submit", "job_cancel", "drain", "shutdown", "ping"],
        "Events until the server stops or another stream takes over; at least a `ping` each 15 s.",
    )],
    problems: &["not_registered", "token_in_use", "too_many_streams"],
    ..Doc::of("listen", "Offers and orders for a worker, as Server-Sent Events.")
};

/// `GET /api/workers/stream`
pub async fn stream(State(app): State<App>, Extension(key): Extension<WorkerKey>) -> Result<Response, ApiError> {
    let open = OpenStream::new(&app, key)?;
    app.core.listening(caller_named(actor(&open.key.worker)), open.key.worker.clone(), open.stream.clone()).await?;
    Ok((STREAM_HEADERS, Sse::new(events(open))).into_response())
}

/// How long to wait.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Wait {
    /// For so many seconds at most, up to 60.
    #[serde(default)]
    wait: u64,
}

/// See [`next`].
pub const NEXT: Doc = Doc {
    problems: &["not_registered", "token_in_use"],
    ..Doc::of(
        "nextOrders",
        "Says what should run on a worker, at once if there is something to do, else when there is.",
    )
};

/// `GET /api/workers/next?wait=`: the desired state, at once if there is something to do, else when there is.
pub async fn next(
    State(app): State<App>,
    Extension(key): Extension<WorkerKey>,
    Query(Wait { wait }): Query<Wait>,
) -> Result<Json<HeartbeatAnswer>, ApiError> {
    let worker = key.worker.clone();
    let mut bell = app.core.hub.follow(&Topic::Worker(worker.clone()));
    // Without its host: who asks from several addresses in turn takes nothing away from anybody.
    let stream = format!("{}/{POLLED}", app.core.server);
    app.core.listening(caller_named(actor(&worker)), worker, stream).await?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(wait.min(LONGEST_WAIT));
    loop {
        bell.mark_unchanged();
        let desired = app.core.desired(&key).await?;
        if !desired.offers.is_empty() || !desired.stop.is_empty() {
            return Ok(Json(HeartbeatAnswer { desired }));
        }
        tokio::select! {
            rung = bell.changed() => if rung.is_err() { return Ok(Json(HeartbeatAnswer { desired })) },
            () = tokio::time::sleep_until(deadline) => return Ok(Json(HeartbeatAnswer { desired })),
            () = app.shutdown.cancelled() => return Ok(Json(HeartbeatAnswer { desired })),
        }
    }
}

/// A stream that is open; its end is noted, which counts for nothing once a newer one took its place.
struct OpenStream {
    app: App,
    key: WorkerKey,
    stream: String,
}

impl OpenStream {
    fn new(app: &App, key: WorkerKey) -> Result<Self, ApiError> {
        let number = app.core.hub.open_stream(app.core.policy.max_streams).ok_or_else(ApiError::too_many_streams)?;
        let stream = stream_name(&app.core.server, &number.to_string(), &host_at(key.peer));
        Ok(Self { app: app.clone(), key, stream })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.core.hub.close_stream();
        if self.app.shutdown.is_cancelled() {
            return;
        }
        let (core, worker, stream) = (self.app.core.clone(), self.key.worker.clone(), std::mem::take(&mut self.stream));
        let caller = Caller { request_id: None, ..caller_named(actor(&worker)) };
        tokio::spawn(async move {
            if let Err(refusal) = core.stopped_listening(caller, worker, stream).await {
                tracing::debug!(?refusal, "the end of a stream was not noted");
            }
        });
    }
}

fn events(open: OpenStream) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let core = open.app.core.clone();
        let mut bell = core.hub.follow(&Topic::Worker(open.key.worker.clone()));
        let (mut sent, mut first, mut look, mut end) = (Sent::default(), true, true, None);
        loop {
            if look {
                bell.mark_unchanged();
                // In a box: what it takes to ask must not be kept while nothing is asked.
                match Box::pin(core.desired_on(&open.key, &open.stream)).await {
                    Ok(Some(Listening { desired, shutdown, until })) => {
                        end = until;
                        for event in sent.news(desired, shutdown, first) {
                            yield Ok(encoded(&open.app.epoch, core.hub.version(), &event));
                        }
                    }
                    // Superseded, or its token opens nothing any more.
                    Ok(None) => break,
                    Err(refusal) => {
                        // The agent asks again, and is then told by its answer's status.
                        tracing::debug!(?refusal, "a worker's stream ends");
                        break;
                    }
                }
                first = false;
            }
            // A token that ends rings no bell.
            let left = end.map_or(PING, |end| past(end - core.now()));
            look = tokio::select! {
                rung = bell.changed() => if rung.is_err() { break } else { true },
                () = tokio::time::sleep(left.min(PING)) => {
                    if left >= PING {
                        yield Ok(encoded(&open.app.epoch, core.hub.version(), &WorkerEvent::Ping));
                    }
                    left < PING
                }
                () = open.app.shutdown.cancelled() => {
                    yield Ok(goodbye());
                    break;
                }
            };
        }
    }
}

/// What a stream has already told.
#[derive(Default)]
struct Sent {
    offers: BTreeSet<(JobId, Attempt)>,
    stops: BTreeSet<(JobId, Attempt)>,
    drain: bool,
    shutdown: bool,
}

impl Sent {
    /// The events that bring the other end from what it was told to what is desired; the first time, all of it.
    fn news(&mut self, desired: Desired, shutdown: Option<String>, first: bool) -> Vec<WorkerEvent> {
        let mut events = Vec::new();
        if desired.drain != self.drain || first {
            self.drain = desired.drain;
            events.push(WorkerEvent::Drain { drain: desired.drain });
        }
        for stop in desired.stop {
            let new = self.stops.insert((stop.job_id.clone(), stop.attempt));
            // An older agent may not have been able to stop when it was told; if it says that it goes on, it is told again.
            if new || stop.reason == StopReason::Superseded {
                events.push(WorkerEvent::JobCancel { job_id: stop.job_id, attempt: stop.attempt, reason: stop.reason });
            }
        }
        for offer in desired.offers {
            if self.offers.insert((offer.job_id.clone(), offer.attempt)) {
                events.push(WorkerEvent::JobSubmit(Box::new(offer)));
            }
        }
        let told = std::mem::replace(&mut self.shutdown, shutdown.is_some());
        events.extend(shutdown.filter(|_| !told).map(|reason| WorkerEvent::Shutdown { reason }));
        events
    }
}

fn encoded(epoch: &str, version: u64, event: &WorkerEvent) -> Event {
    let name = match event {
        WorkerEvent::JobSubmit(_) => "job_submit",
        WorkerEvent::JobCancel { .. } => "job_cancel",
        WorkerEvent::Shutdown { .. } => "shutdown",
        WorkerEvent::Drain { .. } => "drain",
        WorkerEvent::Ping => "ping",
        WorkerEvent::Unknown => "unknown",
    };
    let data = serde_json::to_string(event).expect("plain fields");
    Event::default().event(name).id(format!("{epoch}-{version}")).data(data)
}
