//! `GET /api/events`: sends browsers the names of changed topics. They request the data themselves.

mod audience;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use app::domain::access::Permission;
use app::protocol::topic::{Topic, TopicsChanged};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

use self::audience::Audience;
use super::problem::ApiError;
use super::routes::Routes;
use crate::change_notifier::ChangeSet;
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::{LAST_EVENT_ID_HEADER, OperationDoc, ResponseDoc};
use crate::http::state::AppState;
use crate::random::{OsRandom, Random};
use crate::service::access::per_user_limit::PerUserPermit;
use crate::service::access::{Principal, Requirement};
use crate::service::auth_grant::AuthGrant;

/// Keep proxies from buffering a stream.
pub const STREAM_HEADERS: [(HeaderName, &str); 2] =
    [(HeaderName::from_static("x-accel-buffering"), "no"), (header::CACHE_CONTROL, "no-cache, no-transform")];

/// Changes come in bursts. The first is delayed this long, to be sent together with the others.
const BATCH_WINDOW: Duration = Duration::from_millis(50);

/// One of these is required to listen.
const LISTEN_PERMISSIONS: &[Permission] = &[
    Permission::JobViewOwn,
    Permission::ConfigView,
    Permission::JobSubmit,
    Permission::AccountManage,
    Permission::FleetView,
    Permission::AdminAudit,
];

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Events").get("/events", Requirement::AnyOf(LISTEN_PERMISSIONS), EVENTS, events)
}

/// Query parameters of the stream.
#[derive(Debug, Deserialize, JsonSchema)]
struct EventsQuery {
    /// Topics, separated by commas [default: all].
    topics: Option<String>,
    /// Resume after this version; `Last-Event-ID` takes precedence.
    after: Option<String>,
}

const EVENTS: OperationDoc = OperationDoc {
    description: "Events name changed topics: `workers`, `worker:ID`, `jobs`, `job:ID`, `progress:ID`, `log:ID`, `configs`, `gpus`, `secrets`, \
             `account` (the caller's own), `audit`. Request the changed data separately. Only topics that the caller may see are sent, \
             even if others are requested by name. The first event is sent immediately and contains the version to resume from.",
    headers: &[LAST_EVENT_ID_HEADER],
    problems: &["too_many_event_streams"],
    responses: &[ResponseDoc::events::<TopicsChanged>(
        &[],
        "Changed topics. `retry:` contains the time to wait before reconnecting.",
    )],
    ..OperationDoc::new("followChanges", "Streams changed topics as Server-Sent Events.")
};

async fn events(
    State(app): State<AppState>,
    Query(query): Query<EventsQuery>,
    Extension(principal): Extension<Principal>,
    grant: Option<Extension<AuthGrant>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let permit = app.services.access.acquire_event_stream(&principal)?;
    let topics: Option<BTreeSet<Topic>> =
        query.topics.as_deref().map(|text| text.split(',').filter_map(Topic::parse).collect());
    let last_event_id = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let audience = Audience::new(principal, topics);
    let stream = change_stream(app, audience, last_event_id.or(query.after), grant, permit);
    Ok((STREAM_HEADERS, Sse::new(stream).keep_alive(keep_alive())).into_response())
}

/// Keep-alives are events, because scripts of a page cannot see comments and could not detect a dead stream.
fn keep_alive() -> KeepAlive {
    KeepAlive::new().interval(Duration::from_secs(15)).event(Event::default().event("ping").data(""))
}

fn change_stream(
    app: AppState,
    mut audience: Audience,
    after: Option<String>,
    grant: Option<Extension<AuthGrant>>,
    permit: PerUserPermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let _permit = permit;
        let notifier = &app.services.context.notifier;
        let authorization = grant.clone();
        let mut revoked = pin!(wait_until_revoked(&app, grant));
        let mut subscription = notifier.subscribe();
        let mut version = notifier.version();
        let missed = match after.as_deref().map(|after| parse_resume_version(&app.epoch, after)) {
            None => ChangeSet { version, topics: Vec::new(), resync: false },
            Some(None) => ChangeSet { version, topics: Vec::new(), resync: true },
            Some(Some(from)) => notifier.changes_since(from),
        };
        version = version.max(missed.version);
        // The first message is always sent: it contains the version to resume from.
        let missed = audience.visible_changes(&app.services, missed).await;
        yield Ok(changes_event(&app.epoch, &missed));
        loop {
            tokio::select! {
                () = &mut revoked => break,
                change = subscription.changed() => if change.is_err() { break },
                () = app.shutdown.cancelled() => {
                    yield Ok(shutdown_event());
                    break;
                }
            }
            tokio::time::sleep(BATCH_WINDOW).await;
            let changes = audience.visible_changes(&app.services, notifier.changes_since(version)).await;
            version = changes.version;
            if changes.topics.is_empty() && !changes.resync {
                continue;
            }
            // The role may have changed before the changes that are sent next.
            if let Some(Extension(grant)) = &authorization
                && !app.services.access.is_grant_valid(grant).await.unwrap_or(false)
            {
                break;
            }
            yield Ok(changes_event(&app.epoch, &changes));
        }
    }
}

/// Completes when the listener's authorization is revoked.
pub async fn wait_until_revoked(app: &AppState, grant: Option<Extension<AuthGrant>>) {
    match grant {
        Some(Extension(grant)) => app.services.access.wait_until_revoked(&grant).await,
        None => std::future::pending().await,
    }
}

fn changes_event(epoch: &str, changes: &ChangeSet) -> Event {
    let version = format!("{epoch}-{}", changes.version);
    let topics = changes.topics.iter().map(ToString::to_string).collect();
    let data = TopicsChanged { version: version.clone(), topics, resync: changes.resync };
    let data = serde_json::to_string(&data).expect("plain fields");
    Event::default().id(version).data(data)
}

/// Returns the version to resume after, if this server process has issued it.
fn parse_resume_version(epoch: &str, after: &str) -> Option<u64> {
    after.strip_prefix(epoch)?.strip_prefix('-')?.parse().ok()
}

/// Returns the last message of a stream when the server stops. Its `retry` is randomized, so that clients do not all
/// reconnect at once.
pub fn shutdown_event() -> Event {
    let jitter = u64::from(u16::from_be_bytes(<dyn Random>::bytes::<2>(&OsRandom)) % 4_000);
    Event::default().retry(Duration::from_millis(1_000 + jitter)).comment("the server stops")
}
