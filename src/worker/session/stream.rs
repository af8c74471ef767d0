//! One connection of server-sent events.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use app::protocol::agents::dispatch::WorkerEvent;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use sse_stream::SseStream;

use super::AgentSession;
use super::event_size::EventSizeLimit;
use crate::worker::api::OrchestratorError;
use crate::worker::api::body::format_size;

/// Maximum of the server's `retry` delay.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);

/// How a connection ended.
#[derive(Debug)]
pub enum StreamEnd {
    /// The token was rejected.
    TokenRejected(String),
    /// No byte arrived.
    Silent,
    /// The time for polls is over.
    PollingOver,
    /// This host accepts no more jobs, and reports that.
    Declining,
    /// The connection broke, or the server closed it.
    Lost {
        /// For the log.
        sentence: String,
        /// Reconnection delay that the server asks for.
        retry: Option<Duration>,
    },
}

/// Why the body ended.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("the stream was silent for too long")]
    Silent,
    #[error("the stream was interrupted: {0}")]
    Network(String),
    #[error("the stream sent an event of more than {}", format_size(*.0))]
    TooLarge(usize),
}

/// Listens until the connection ends.
pub async fn listen(session: &AgentSession) -> StreamEnd {
    let response = match session.context.api.stream().await {
        Ok(response) => response,
        Err(OrchestratorError::Unauthorized(sentence)) => return StreamEnd::TokenRejected(sentence),
        Err(error) => return lost(format!("cannot open the stream: {error}"), None),
    };
    let content_type =
        response.headers().get("content-type").and_then(|content_type| content_type.to_str().ok()).unwrap_or_default();
    if !content_type.starts_with("text/event-stream") {
        return lost(format!("the stream's address sends {content_type:?}, not events"), None);
    }
    tracing::debug!("the stream is open");
    let has_received = AtomicBool::new(false);
    let config = &session.context.config;
    let bytes = limit_stream(response, &has_received, config.stream_timeout, config.input_limits.max_event);
    let mut events = pin!(SseStream::from_bytes_stream(bytes));
    let mut retry = None;
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(_) if !has_received.load(Ordering::Relaxed) => return StreamEnd::Silent,
            Err(error) => return lost(error.to_string(), retry),
        };
        session.record_contact();
        retry = event.retry.map(|ms| Duration::from_millis(ms).min(MAX_RETRY_DELAY)).or(retry);
        let Some(data) = event.data else { continue };
        match serde_json::from_str::<WorkerEvent>(&data) {
            Ok(event) => session.handle_event(event).await,
            // The response to the heartbeat contains the same state.
            Err(error) => tracing::warn!("cannot read an event: {error}"),
        }
    }
    lost("the orchestrator closed the stream".to_owned(), retry)
}

fn lost(sentence: String, retry: Option<Duration>) -> StreamEnd {
    StreamEnd::Lost { sentence, retry }
}

/// The body's bytes, ended by silence or by an event that is too long.
fn limit_stream(
    response: Response,
    has_received: &AtomicBool,
    timeout: Duration,
    max_event: usize,
) -> impl Stream<Item = Result<Bytes, StreamError>> {
    stream::try_unfold((response, EventSizeLimit::new(max_event)), move |(mut response, mut size)| async move {
        match tokio::time::timeout(timeout, response.chunk()).await {
            Err(_) => Err(StreamError::Silent),
            Ok(Err(error)) => Err(StreamError::Network(error.to_string())),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(bytes))) => {
                has_received.store(true, Ordering::Relaxed);
                if size.accept(&bytes) {
                    Ok(Some((bytes, (response, size))))
                } else {
                    Err(StreamError::TooLarge(max_event))
                }
            }
        }
    })
}
