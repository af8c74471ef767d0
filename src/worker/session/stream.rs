//! One connection of server-sent events.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use app::protocol::dispatch::WorkerEvent;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use sse_stream::SseStream;

use super::Session;
use super::event_size::EventSize;
use crate::api::ApiError;
use crate::api::body::size;

/// The server's wish to wait is followed up to this.
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// How a connection ended.
#[derive(Debug)]
pub enum End {
    /// The token was refused.
    Refused(String),
    /// Not one byte came.
    Silent,
    /// The time for polls is over.
    PollingOver,
    /// This host takes nothing more, and says so.
    TurnedAway,
    /// It broke, or the server closed it.
    Lost {
        /// For the log.
        sentence: String,
        /// When the server wants us back.
        retry: Option<Duration>,
    },
}

/// Why no more bytes come.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the stream was silent for too long")]
    Silent,
    #[error("the stream broke: {0}")]
    Network(String),
    #[error("the stream brought an event of more than {}", size(*.0))]
    TooLarge(usize),
}

/// Listens until the connection ends.
pub async fn listen(session: &Session) -> End {
    let response = match session.context.api.stream().await {
        Ok(response) => response,
        Err(ApiError::Refused(sentence)) => return End::Refused(sentence),
        Err(error) => return lost(format!("no stream: {error}"), None),
    };
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return lost(format!("the stream's address answers {kind:?} and not events"), None);
    }
    tracing::debug!("the stream is open");
    let heard = AtomicBool::new(false);
    let config = &session.context.config;
    let bytes = limited(response, &heard, config.stream_patience, config.bounds.max_event);
    let mut events = pin!(SseStream::from_bytes_stream(bytes));
    let mut retry = None;
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(_) if !heard.load(Ordering::Relaxed) => return End::Silent,
            Err(error) => return lost(error.to_string(), retry),
        };
        session.contact();
        retry = event.retry.map(|ms| Duration::from_millis(ms).min(LONGEST_RETRY)).or(retry);
        let Some(data) = event.data else { continue };
        match serde_json::from_str::<WorkerEvent>(&data) {
            Ok(event) => session.heard(event).await,
            // The heartbeat's answer says the same.
            Err(error) => tracing::warn!("an event cannot be read: {error}"),
        }
    }
    lost("the orchestrator closed the stream".to_owned(), retry)
}

fn lost(sentence: String, retry: Option<Duration>) -> End {
    End::Lost { sentence, retry }
}

/// The body's bytes, ended by silence or by an event without end.
fn limited(
    response: Response,
    heard: &AtomicBool,
    patience: Duration,
    most: usize,
) -> impl Stream<Item = Result<Bytes, Broken>> {
    stream::try_unfold((response, EventSize::up_to(most)), move |(mut response, mut size)| async move {
        match tokio::time::timeout(patience, response.chunk()).await {
            Err(_) => Err(Broken::Silent),
            Ok(Err(error)) => Err(Broken::Network(error.to_string())),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(bytes))) => {
                heard.store(true, Ordering::Relaxed);
                if size.add(&bytes) { Ok(Some((bytes, (response, size)))) } else { Err(Broken::TooLarge(most)) }
            }
        }
    })
}
