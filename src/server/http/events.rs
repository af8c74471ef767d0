//! `GET /api/events`: tells browsers which topics changed. What changed, they ask.

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
use super::address::Query;
use super::openapi::doc::{Answer, Doc, LAST_EVENT_ID};
use super::problem::ApiError;
use super::routes::Routes;
use crate::hub::Changes;
use crate::random::{OsRandom, Random};
use crate::service::access::{Admission, Needs, Person};
use crate::service::shares::Share;
use crate::state::App;

/// What keeps proxies from holding a stream back.
pub const STREAM_HEADERS: [(HeaderName, &str); 2] =
    [(HeaderName::from_static("x-accel-buffering"), "no"), (header::CACHE_CONTROL, "no-cache, no-transform")];

/// Changes come in bursts; so long the first is held back for the others.
const GATHER: Duration = Duration::from_millis(50);

/// Whoever has one of these hears of something.
const HEARS: &[Permission] = &[
    Permission::JobViewOwn,
    Permission::ConfigView,
    Permission::JobSubmit,
    Permission::AccountManage,
    Permission::AdminWorkers,
    Permission::AdminAudit,
];

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Events").get("/events", Needs::AnyOf(HEARS), EVENTS, events)
}

/// What to listen for.
#[derive(Debug, Deserialize, JsonSchema)]
struct Interest {
    /// Topics, separated by commas; left out, all.
    topics: Option<String>,
    /// Resume after this version; `Last-Event-ID` wins.
    after: Option<String>,
}

const EVENTS: Doc = Doc {
    detail: "What changed is a topic: `workers`, `worker:ID`, `jobs`, `job:ID`, `log:ID`, `configs`, `gpus`, `secrets`, \
             `account` (the caller's own), `trail`; the change itself is asked for. Only what the caller may see is told, \
             also of topics that are asked for by name. The first event comes at once and says where to resume.",
    headers: &[LAST_EVENT_ID],
    problems: &["too_many_event_streams"],
    answers: &[Answer::events::<TopicsChanged>(&[], "Topics, as they change. A `retry:` says when to come back.")],
    ..Doc::of("followChanges", "Tells which topics changed, as Server-Sent Events.")
};

async fn events(
    State(app): State<App>,
    Query(interest): Query<Interest>,
    Extension(person): Extension<Person>,
    admission: Option<Extension<Admission>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let share = app.core.event_stream(&person)?;
    let topics: Option<BTreeSet<Topic>> =
        interest.topics.as_deref().map(|text| text.split(',').filter_map(Topic::parse).collect());
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let audience = Audience::new(person, topics);
    let stream = changes(app, audience, last.or(interest.after), admission, share);
    Ok((STREAM_HEADERS, Sse::new(stream).keep_alive(alive())).into_response())
}

/// What keeps a stream alive is an event, as scripts of a page see no comments: they find out that a stream is dead.
fn alive() -> KeepAlive {
    KeepAlive::new().interval(Duration::from_secs(15)).event(Event::default().event("ping").data(""))
}

fn changes(
    app: App,
    mut audience: Audience,
    after: Option<String>,
    admission: Option<Extension<Admission>>,
    share: Share,
) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let _share = share;
        let hub = &app.core.hub;
        let admitted = admission.clone();
        let mut shut = pin!(shut(&app, admission));
        let mut bell = hub.listen();
        let mut version = hub.version();
        let missed = match after.as_deref().map(|after| resumed(&app.epoch, after)) {
            None => Changes { version, topics: Vec::new(), resync: false },
            Some(None) => Changes { version, topics: Vec::new(), resync: true },
            Some(Some(from)) => hub.since(from),
        };
        version = version.max(missed.version);
        // The first message always comes: it says where to resume.
        let missed = audience.told(&app.core, missed).await;
        yield Ok(message(&app.epoch, &missed));
        loop {
            tokio::select! {
                () = &mut shut => break,
                rung = bell.changed() => if rung.is_err() { break },
                () = app.shutdown.cancelled() => {
                    yield Ok(goodbye());
                    break;
                }
            }
            tokio::time::sleep(GATHER).await;
            let changes = audience.told(&app.core, hub.since(version)).await;
            version = changes.version;
            if changes.topics.is_empty() && !changes.resync {
                continue;
            }
            // Somebody's role may have changed before what they would hear of now.
            if let Some(Extension(admission)) = &admitted
                && !app.core.still_holds(admission).await.unwrap_or(false)
            {
                break;
            }
            yield Ok(message(&app.epoch, &changes));
        }
    }
}

/// Comes to an end when whoever listens may not any more.
pub async fn shut(app: &App, admission: Option<Extension<Admission>>) {
    match admission {
        Some(Extension(admission)) => app.core.until_shut(&admission).await,
        None => std::future::pending().await,
    }
}

fn message(epoch: &str, changes: &Changes) -> Event {
    let version = format!("{epoch}-{}", changes.version);
    let topics = changes.topics.iter().map(ToString::to_string).collect();
    let data = TopicsChanged { version: version.clone(), topics, resync: changes.resync };
    let data = serde_json::to_string(&data).expect("plain fields");
    Event::default().id(version).data(data)
}

/// The version to resume after, if it is of this server's life.
fn resumed(epoch: &str, after: &str) -> Option<u64> {
    after.strip_prefix(epoch)?.strip_prefix('-')?.parse().ok()
}

/// The last message of a stream when the server stops: come back, but not all at once.
pub fn goodbye() -> Event {
    let jitter = u64::from(u16::from_be_bytes(<dyn Random>::bytes::<2>(&OsRandom)) % 4_000);
    Event::default().retry(Duration::from_millis(1_000 + jitter)).comment("the server stops")
}
