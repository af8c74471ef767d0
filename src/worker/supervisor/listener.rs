//! The webhook: a small HTTP server on the loopback address, only for the trainer.

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
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::events::EventRecorder;
use crate::worker::args::input_limits::WebhookLimits;
use crate::worker::secret::Secret;

/// How long an event that was sent just before the exit may take to arrive.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub struct WebhookListener {
    port: u16,
    accept_task: JoinHandle<()>,
    finish: oneshot::Sender<()>,
    connections: TaskTracker,
    /// Everyone on the host can hold connections open.
    _close_on_drop: DropGuard,
}

impl WebhookListener {
    /// Starts it on a free port.
    pub async fn start(limits: WebhookLimits, secret: Secret, events: EventRecorder) -> io::Result<Self> {
        let socket = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let port = socket.local_addr()?.port();
        let (connections, closed) = (TaskTracker::new(), CancellationToken::new());
        let (finish, finished) = oneshot::channel();
        let acceptor = ConnectionAcceptor {
            permits: Arc::new(Semaphore::new(limits.connections)),
            pending: PendingConnections::default(),
            connections: connections.clone(),
            closed: closed.clone(),
            handler: Arc::new(WebhookHandler {
                limits,
                secret,
                events: Mutex::new(events),
                body_permit: Semaphore::new(1),
            }),
        };
        let accept_task = tokio::spawn(acceptor.accept_until(socket, finished));
        Ok(Self { port, accept_task, finish, connections, _close_on_drop: closed.drop_guard() })
    }

    /// The port in use.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Receives what the trainer has sent before it exited, and stops.
    pub async fn finish(self) {
        let _ = self.finish.send(());
        let drain = async {
            let _ = self.accept_task.await;
            self.connections.close();
            self.connections.wait().await;
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
    }
}

struct WebhookHandler {
    limits: WebhookLimits,
    secret: Secret,
    events: Mutex<EventRecorder>,
    /// One body is in memory at a time.
    body_permit: Semaphore,
}

struct ConnectionAcceptor {
    permits: Arc<Semaphore>,
    pending: PendingConnections,
    connections: TaskTracker,
    closed: CancellationToken,
    handler: Arc<WebhookHandler>,
}

impl ConnectionAcceptor {
    async fn accept_until(mut self, socket: TcpListener, mut finished: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                accepted = socket.accept() => match accepted {
                    Ok((stream, _)) => self.serve(stream).await,
                    // Most likely out of file descriptors; others may be closed soon.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                _ = &mut finished => break,
            }
        }
        // Connections of the trainer, which has exited, may still wait to be accepted. No others will follow.
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, _)) = socket.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                self.serve(stream).await;
                tokio::task::yield_now().await;
            }
        }
    }

    async fn serve(&mut self, stream: TcpStream) {
        if self.permits.available_permits() == 0 {
            self.pending.drop_oldest();
        }
        // Never closed.
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
        let is_authenticated = Arc::new(AtomicBool::new(false));
        let connection = serve_connection(stream, Arc::clone(&self.handler), Arc::clone(&is_authenticated));
        let closed = self.closed.clone();
        let task = self.connections.spawn(async move {
            closed.run_until_cancelled(connection).await;
            drop(permit);
        });
        self.pending.add(task, is_authenticated);
    }
}

/// Connections that have not sent the key, the oldest first. Every user of the host can open some, and if they used all
/// permits, the trainer could not connect.
#[derive(Default)]
struct PendingConnections(VecDeque<(JoinHandle<()>, Arc<AtomicBool>)>);

impl PendingConnections {
    fn add(&mut self, task: JoinHandle<()>, is_authenticated: Arc<AtomicBool>) {
        self.0.retain(|(task, is_authenticated)| !task.is_finished() && !is_authenticated.load(Ordering::Relaxed));
        self.0.push_back((task, is_authenticated));
    }

    fn drop_oldest(&mut self) {
        while let Some((task, is_authenticated)) = self.0.pop_front() {
            if !task.is_finished() && !is_authenticated.load(Ordering::Relaxed) {
                return task.abort();
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, handler: Arc<WebhookHandler>, is_authenticated: Arc<AtomicBool>) {
    let WebhookLimits { idle, head, .. } = handler.limits;
    let service = service_fn(move |request| {
        let (handler, is_authenticated) = (Arc::clone(&handler), Arc::clone(&is_authenticated));
        async move {
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = handler.handle(request, &is_authenticated).await;
            if !is_authenticated.load(Ordering::Relaxed) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        // A trainer that exits right after its last event does not wait for the response.
        .half_close(true)
        .max_buf_size(head)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a webhook connection failed: {error}");
    }
}

impl WebhookHandler {
    async fn handle(&self, request: Request<Incoming>, is_authenticated: &AtomicBool) -> StatusCode {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let api_key = request.headers().get("x-api-key").map(HeaderValue::as_bytes);
        if api_key != Some(self.secret.reveal().as_bytes()) {
            return StatusCode::UNAUTHORIZED;
        }
        is_authenticated.store(true, Ordering::Relaxed);
        if request.body().size_hint().lower() > self.limits.body as u64 {
            return StatusCode::PAYLOAD_TOO_LARGE;
        }
        // Never closed.
        let Ok(_permit) = self.body_permit.acquire().await else { return StatusCode::SERVICE_UNAVAILABLE };
        let body = Limited::new(request.into_body(), self.limits.body).collect();
        let body = match tokio::time::timeout(self.limits.body_time, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        let result = self.events.lock().unwrap_or_else(PoisonError::into_inner).record(&body);

        match result {
            Ok(()) => StatusCode::NO_CONTENT,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => StatusCode::BAD_REQUEST,
            Err(error) => {
                tracing::error!("cannot record an event: {error}");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/listener.rs"]
mod tests;
