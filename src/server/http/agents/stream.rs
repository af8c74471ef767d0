//! A worker's event stream, and long polling for networks that block streams.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use app::domain::ids::{AttemptNumber, JobId};
use app::protocol::agents::dispatch::WorkerEvent;
use app::protocol::agents::{DesiredState, HeartbeatResponse, StopReason};
use app::protocol::topic::Topic;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::clock::slightly_after;
use crate::http::edge::extractors::Query;
use crate::http::edge::request::{caller_from_actor, worker_actor};
use crate::http::events::{STREAM_HEADERS, shutdown_event};
use crate::http::operation::doc::{OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::agents::StreamState;
use crate::service::unit_of_work::Caller;
use crate::service::workers::token_conflict::{host_of_peer, stream_name};
use crate::service::workers::tokens::WorkerAuth;

/// The maximum time between two events, so that both ends can detect a dead stream.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// The stream number of long polling.
const LONG_POLL_STREAM: &str = "polled";
/// The longest wait of a long poll, in seconds.
const MAX_WAIT_SECONDS: u64 = 60;

pub const STREAM: OperationDoc = OperationDoc {
    description: "Each connection starts with the full desired state, so nothing is replayed. A newer stream of the worker \
             ends this one.",
    responses: &[ResponseDoc::events::<WorkerEvent>(
        &["job_submit", "job_cancel", "drain", "shutdown", "ping"],
        "Events until the server stops or another stream replaces this one; at least a `ping` every 15 s.",
    )],
    problems: &["not_registered", "token_in_use", "too_many_streams"],
    ..OperationDoc::new("listen", "Streams offers and requests for a worker as Server-Sent Events.")
};

/// `GET /api/workers/stream`
pub async fn stream(State(app): State<AppState>, Extension(auth): Extension<WorkerAuth>) -> Result<Response, ApiError> {
    let open = OpenStream::new(&app, auth)?;
    app.services
        .agents
        .stream_opened(caller_from_actor(worker_actor(&open.auth.worker)), open.auth.worker.clone(), open.name.clone())
        .await?;
    Ok((STREAM_HEADERS, Sse::new(event_stream(open))).into_response())
}

/// Query parameters of a long poll.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PollParams {
    /// Maximum wait in seconds, up to 60.
    #[serde(default)]
    wait: u64,
}

pub const NEXT: OperationDoc = OperationDoc {
    problems: &["not_registered", "token_in_use"],
    ..OperationDoc::new(
        "nextOrders",
        "Returns the desired state of a worker, immediately if there is something to do, otherwise when there is.",
    )
};

/// `GET /api/workers/next?wait=`: returns the desired state immediately if there is something to do, otherwise when
/// there is.
pub async fn next(
    State(app): State<AppState>,
    Extension(auth): Extension<WorkerAuth>,
    Query(PollParams { wait }): Query<PollParams>,
) -> Result<Json<HeartbeatResponse>, ApiError> {
    let worker = auth.worker.clone();
    let mut changes = app.services.context.notifier.subscribe_topic(&Topic::Worker(worker.clone()));
    // Without the host: a worker that polls from several addresses uses one slot.
    let stream = format!("{}/{LONG_POLL_STREAM}", app.services.context.server);
    app.services.agents.stream_opened(caller_from_actor(worker_actor(&worker)), worker, stream).await?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(wait.min(MAX_WAIT_SECONDS));
    loop {
        changes.mark_unchanged();
        let desired = app.services.agents.desired(&auth).await?;
        if !desired.offers.is_empty() || !desired.stop.is_empty() {
            return Ok(Json(HeartbeatResponse { desired }));
        }
        tokio::select! {
            change = changes.changed() => if change.is_err() { return Ok(Json(HeartbeatResponse { desired })) },
            () = tokio::time::sleep_until(deadline) => return Ok(Json(HeartbeatResponse { desired })),
            () = app.shutdown.cancelled() => return Ok(Json(HeartbeatResponse { desired })),
        }
    }
}

/// An open stream. Its end is recorded, unless a newer stream has replaced it.
struct OpenStream {
    app: AppState,
    auth: WorkerAuth,
    name: String,
}

impl OpenStream {
    fn new(app: &AppState, auth: WorkerAuth) -> Result<Self, ApiError> {
        let number = app
            .services
            .context
            .notifier
            .open_stream(app.services.context.policy.max_streams)
            .ok_or_else(ApiError::too_many_streams)?;
        let name = stream_name(&app.services.context.server, &number.to_string(), &host_of_peer(auth.peer));
        Ok(Self { app: app.clone(), auth, name })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.services.context.notifier.close_stream();
        if self.app.shutdown.is_cancelled() {
            return;
        }
        let (services, worker, stream) =
            (self.app.services.clone(), self.auth.worker.clone(), std::mem::take(&mut self.name));
        let caller = Caller { request_id: None, ..caller_from_actor(worker_actor(&worker)) };
        tokio::spawn(async move {
            if let Err(error) = services.agents.stream_closed(caller, worker, stream).await {
                tracing::debug!(?error, "agents: failed to record the end of a stream");
            }
        });
    }
}

fn event_stream(stream: OpenStream) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let services = stream.app.services.clone();
        let mut subscription = services.context.notifier.subscribe_topic(&Topic::Worker(stream.auth.worker.clone()));
        let (mut sent_state, mut token_expires_at) = (SentState::default(), None);
        let (mut is_first, mut must_read) = (true, true);
        loop {
            if must_read {
                subscription.mark_unchanged();
                // Boxed, so that an idle stream does not hold the memory of the query.
                match Box::pin(services.agents.desired_for_stream(&stream.auth, &stream.name)).await {
                    Ok(Some(StreamState { desired, shutdown, expires_at })) => {
                        token_expires_at = expires_at;
                        for event in sent_state.events_for(desired, shutdown, is_first) {
                            yield Ok(to_event(&stream.app.epoch, services.context.notifier.version(), &event));
                        }
                    }
                    // Replaced by a newer stream, or the token is invalid.
                    Ok(None) => break,
                    Err(error) => {
                        // The agent reconnects and gets the error as the status of that response.
                        tracing::debug!(?error, "agents: closing a stream");
                        break;
                    }
                }
                is_first = false;
            }
            // An expiring token sends no change notification.
            let now = services.context.now();
            let remaining = token_expires_at.map_or(PING_INTERVAL, |end| slightly_after(end - now));
            must_read = tokio::select! {
                change = subscription.changed() => if change.is_err() { break } else { true },
                () = tokio::time::sleep(remaining.min(PING_INTERVAL)) => {
                    if remaining >= PING_INTERVAL {
                        yield Ok(to_event(&stream.app.epoch, services.context.notifier.version(), &WorkerEvent::Ping));
                    }
                    remaining < PING_INTERVAL
                }
                () = stream.app.shutdown.cancelled() => {
                    yield Ok(shutdown_event());
                    break;
                }
            };
        }
    }
}

/// What has been sent on a stream.
#[derive(Default)]
struct SentState {
    offers: BTreeSet<(JobId, AttemptNumber)>,
    stops: BTreeSet<(JobId, AttemptNumber)>,
    drain: bool,
    shutdown: bool,
}

impl SentState {
    /// Returns the events that bring the agent from the last sent state to the desired one; the first time, the full
    /// state.
    fn events_for(&mut self, desired: DesiredState, shutdown: Option<String>, is_first: bool) -> Vec<WorkerEvent> {
        let mut events = Vec::new();
        if desired.drain != self.drain || is_first {
            self.drain = desired.drain;
            events.push(WorkerEvent::Drain { drain: desired.drain });
        }
        for stop in desired.stop {
            let is_new = self.stops.insert((stop.job_id.clone(), stop.attempt));
            // An older agent may have missed the stop. If it still reports the run, the stop is sent again.
            if is_new || stop.reason == StopReason::Superseded {
                events.push(WorkerEvent::JobCancel { job_id: stop.job_id, attempt: stop.attempt, reason: stop.reason });
            }
        }
        for offer in desired.offers {
            if self.offers.insert((offer.job_id.clone(), offer.attempt)) {
                events.push(WorkerEvent::JobSubmit(Box::new(offer)));
            }
        }
        let was_sent = std::mem::replace(&mut self.shutdown, shutdown.is_some());
        events.extend(shutdown.filter(|_| !was_sent).map(|reason| WorkerEvent::Shutdown { reason }));
        events
    }
}

fn to_event(epoch: &str, version: u64, event: &WorkerEvent) -> Event {
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
