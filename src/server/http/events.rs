//! `GET /api/events`: tells browsers which topics changed. What changed, they ask.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use app::protocol::topic::{Topic, TopicsChanged};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

use super::address::Query;
use super::openapi::doc::{Answer, Doc, LAST_EVENT_ID};
use super::routes::Routes;
use crate::hub::Changes;
use crate::random::{OsRandom, Random};
use crate::service::access::{Admission, Needs};
use crate::state::App;

/// What keeps proxies from holding a stream back.
pub const STREAM_HEADERS: [(HeaderName, &str); 2] =
    [(HeaderName::from_static("x-accel-buffering"), "no"), (header::CACHE_CONTROL, "no-cache, no-transform")];

/// Changes come in bursts; so long the first is held back for the others.
const GATHER: Duration = Duration::from_millis(50);

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Events").get("/events", Needs::Login, EVENTS, events)
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
    detail: "What changed is a topic: `workers`, `worker:ID`, `jobs`, `job:ID`, `log:ID`, `configs`, `gpus`, \
             `trail`; the change itself is asked for. The first event comes at once and says where to resume.",
    headers: &[LAST_EVENT_ID],
    answers: &[Answer::events::<TopicsChanged>(&[], "Topics, as they change. A `retry:` says when to come back.")],
    ..Doc::of("followChanges", "Tells which topics changed, as Server-Sent Events.")
};

async fn events(
    State(app): State<App>,
    Query(interest): Query<Interest>,
    admission: Option<Extension<Admission>>,
    headers: HeaderMap,
) -> Response {
    let topics: Option<BTreeSet<Topic>> =
        interest.topics.as_deref().map(|text| text.split(',').filter_map(Topic::parse).collect());
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let stream = changes(app, topics, last.or(interest.after), admission);
    (STREAM_HEADERS, Sse::new(stream).keep_alive(alive())).into_response()
}

/// What keeps a stream alive is an event, as scripts of a page see no comments: they find out that a stream is dead.
fn alive() -> KeepAlive {
    KeepAlive::new().interval(Duration::from_secs(15)).event(Event::default().event("ping").data(""))
}

fn changes(
    app: App,
    topics: Option<BTreeSet<Topic>>,
    after: Option<String>,
    admission: Option<Extension<Admission>>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    async_stream::stream! {
        let hub = &app.core.hub;
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
        yield Ok(message(&app.epoch, &missed, topics.as_ref()).0);
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
            let changes = hub.since(version);
            version = changes.version;
            let (event, matters) = message(&app.epoch, &changes, topics.as_ref());
            if matters {
                yield Ok(event);
            }
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

fn message(epoch: &str, changes: &Changes, topics: Option<&BTreeSet<Topic>>) -> (Event, bool) {
    let told = |topic: &Topic| !matches!(topic, Topic::Access(_));
    let wanted = |topic: &&Topic| told(topic) && topics.is_none_or(|topics| topics.contains(topic));
    let topics: Vec<String> = changes.topics.iter().filter(wanted).map(ToString::to_string).collect();
    let matters = changes.resync || !topics.is_empty();
    let version = format!("{epoch}-{}", changes.version);
    let data = TopicsChanged { version: version.clone(), topics, resync: changes.resync };
    let data = serde_json::to_string(&data).expect("plain fields");
    (Event::default().id(version).data(data), matters)
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
