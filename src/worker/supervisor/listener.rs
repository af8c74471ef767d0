//! The webhook: a small HTTP server on the loopback address, for the trainer only.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::events::Events;
use crate::cli::bounds::WebhookBounds;
use crate::secret::Secret;

/// How long an event that was sent just before the end may take to arrive.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// The running server.
pub struct Listener {
    port: u16,
    accepting: JoinHandle<()>,
    connections: TaskTracker,
}

impl Listener {
    /// Starts it on a free port.
    pub async fn start(bounds: WebhookBounds, secret: Secret, events: Events) -> io::Result<Self> {
        let socket = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let port = socket.local_addr()?.port();
        let connections = TaskTracker::new();
        let hook = Arc::new(Hook { bounds, secret, events: Mutex::new(events), reader: Semaphore::new(1) });
        let accepting = tokio::spawn(accept(socket, hook, connections.clone()));
        Ok(Self { port, accepting, connections })
    }

    /// The port it got.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes what is still on its way, and ends.
    pub async fn finish(self) {
        // What the trainer sent last waits to be accepted, at most.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.accepting.abort();
        self.connections.close();
        let _ = tokio::time::timeout(LAST_EVENTS, self.connections.wait()).await;
    }
}

struct Hook {
    bounds: WebhookBounds,
    secret: Secret,
    events: Mutex<Events>,
    /// One body is in memory at a time.
    reader: Semaphore,
}

async fn accept(socket: TcpListener, hook: Arc<Hook>, connections: TaskTracker) {
    let places = Arc::new(Semaphore::new(hook.bounds.connections));
    let mut strangers = Strangers::default();
    loop {
        let Ok((stream, _)) = socket.accept().await else {
            // Out of descriptors, most likely: others may be closed meanwhile.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if places.available_permits() == 0 {
            strangers.drop_oldest();
        }
        // It is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let is_known = Arc::new(AtomicBool::new(false));
        let connection = serve(stream, Arc::clone(&hook), Arc::clone(&is_known));
        let task = connections.spawn(async move {
            connection.await;
            drop(place);
        });
        strangers.add(task, is_known);
    }
}

/// Connections that have not shown the key, the oldest first. Every user of the host can open some, and with all places taken
/// the trainer would not be heard.
#[derive(Default)]
struct Strangers(VecDeque<(JoinHandle<()>, Arc<AtomicBool>)>);

impl Strangers {
    fn add(&mut self, task: JoinHandle<()>, is_known: Arc<AtomicBool>) {
        self.0.retain(|(task, is_known)| !task.is_finished() && !is_known.load(Ordering::Relaxed));
        self.0.push_back((task, is_known));
    }

    fn drop_oldest(&mut self) {
        while let Some((task, is_known)) = self.0.pop_front() {
            if !task.is_finished() && !is_known.load(Ordering::Relaxed) {
                return task.abort();
            }
        }
    }
}

async fn serve(stream: TcpStream, hook: Arc<Hook>, is_known: Arc<AtomicBool>) {
    let WebhookBounds { idle, head, .. } = hook.bounds;
    let service = service_fn(move |request| {
        let (hook, is_known) = (Arc::clone(&hook), Arc::clone(&is_known));
        async move {
            let mut answer = Response::new(Empty::<Bytes>::new());
            *answer.status_mut() = hook.take(request, &is_known).await;
            if !is_known.load(Ordering::Relaxed) {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(head)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a webhook connection broke: {error}");
    }
}

impl Hook {
    async fn take(&self, request: Request<Incoming>, is_known: &AtomicBool) -> StatusCode {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let key = request.headers().get("x-api-key").map(HeaderValue::as_bytes);
        if key != Some(self.secret.reveal().as_bytes()) {
            return StatusCode::UNAUTHORIZED;
        }
        is_known.store(true, Ordering::Relaxed);
        if request.body().size_hint().lower() > self.bounds.body as u64 {
            return StatusCode::PAYLOAD_TOO_LARGE;
        }
        // It is never closed.
        let Ok(_turn) = self.reader.acquire().await else { return StatusCode::SERVICE_UNAVAILABLE };
        let body = Limited::new(request.into_body(), self.bounds.body).collect();
        let body = match tokio::time::timeout(self.bounds.body_time, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        let taken = self.events.lock().unwrap_or_else(PoisonError::into_inner).take(&body);
        match taken {
            Ok(()) => StatusCode::NO_CONTENT,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => StatusCode::BAD_REQUEST,
            Err(error) => {
                tracing::error!("an event cannot be written down: {error}");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/listener.rs"]
mod tests;
