//! Accepts connections and answers them.
//!
//! Not by `axum::serve`: that copies every route for each connection and leaves no word in hyper's settings, which is
//! more than half of what a worker's idle stream cost.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::http::request::Peer;

/// How long requests that are under way may take when the server stops.
const DRAIN: Duration = Duration::from_secs(8);

/// How long a connection may take to say what it wants, the first time and between two requests. Longer than clients
/// keep an idle connection (reqwest 90 s, Firefox 115 s), so that it is not closed while they send.
const SILENCE: Duration = Duration::from_mins(2);

/// Without an acknowledgement for so long the other end is gone: a dead host's stream must not count as listening.
/// Pings make sure that there is something to acknowledge.
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);

/// Serves until the server is to stop, then waits for what is under way, but not for long.
pub async fn serve(mut listener: TcpListener, router: Router, shutdown: &CancellationToken) {
    let connections = TaskTracker::new();
    // The trait's method, which waits when there are too many open files.
    while let Some((socket, peer)) = shutdown.run_until_cancelled(Listener::accept(&mut listener)).await {
        connections.spawn(connection(socket, Peer(peer.ip()), router.clone(), shutdown.clone()));
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

async fn connection(socket: TcpStream, peer: Peer, router: Router, shutdown: CancellationToken) {
    if let Err(error) = set_options(&socket) {
        tracing::debug!(%error, "a connection without its options");
    }
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().call(request)
    });
    let mut http = http1::Builder::new();
    let http = http.timer(TokioTimer::new()).header_read_timeout(SILENCE);
    let mut http = pin!(http.serve_connection(TokioIo::new(socket), answer));
    let ended = tokio::select! {
        ended = http.as_mut() => ended,
        () = shutdown.cancelled() => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended");
    }
}

fn set_options(socket: &TcpStream) -> std::io::Result<()> {
    // Events are small and must not wait for more.
    socket.set_nodelay(true)?;
    SockRef::from(socket).set_tcp_user_timeout(Some(UNACKNOWLEDGED))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_is_answered_when_the_server_stops_and_what_is_idle_is_closed() {
        let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (asked, go_on) = (Arc::clone(&asked), Arc::clone(&go_on));
            async move |Extension(Peer(host)): Extension<Peer>| {
                asked.notify_one();
                go_on.notified().await;
                host.to_string()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let router = Router::new().route("/slow", get(slow));
        let server = tokio::spawn(async move { serve(listener, router, &stop).await });

        let mut idle = TcpStream::connect(address).await.expect("connected");
        let mut busy = TcpStream::connect(address).await.expect("connected");
        busy.write_all(b"GET /slow HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("asked");
        asked.notified().await;
        shutdown.cancel();
        assert_eq!(idle.read_to_end(&mut Vec::new()).await.expect("an end"), 0);
        go_on.notify_one();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).await.expect("an answer, and an end");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1"), "{answer}");
        server.await.expect("the server ended");
    }

    #[tokio::test]
    async fn sockets_send_at_once_and_give_up_on_a_dead_host() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        set_options(&socket).expect("options that this system knows");
        assert!(socket.nodelay().expect("an option"));
        assert_eq!(SockRef::from(&socket).tcp_user_timeout().expect("an option"), Some(UNACKNOWLEDGED));
    }
}
