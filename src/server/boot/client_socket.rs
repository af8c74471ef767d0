//! A client's socket, and how long the kernel waits for the client.
//!
//! The kernel closes a connection whose data was not acknowledged for the user timeout, also if the client is alive but
//! reads nothing. A stream is closed early, so that a dead host does not count as connected: its pings make sure that there
//! is data to acknowledge. A download may be paused.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How long a client may acknowledge nothing.
#[derive(Debug, Clone, Copy)]
pub struct ReadTimeouts {
    /// While it has a stream.
    pub stream: Duration,
    /// Otherwise.
    pub transfer: Duration,
}

impl Default for ReadTimeouts {
    fn default() -> Self {
        Self { stream: Duration::from_mins(1), transfer: Duration::from_mins(30) }
    }
}

/// Whether a connection has a stream.
#[derive(Debug, Clone, Default)]
pub struct StreamMark(Arc<AtomicBool>);

impl StreamMark {
    /// Sets it if this response is a stream.
    pub fn set_for<B>(&self, response: &Response<B>) {
        if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The socket of a connection.
pub struct ClientSocket {
    socket: TcpStream,
    mark: StreamMark,
    /// Until it is set.
    stream_timeout: Option<Duration>,
}

impl ClientSocket {
    /// Sets the socket's options; one that fails is only logged.
    pub fn new(socket: TcpStream, timeouts: ReadTimeouts, mark: StreamMark) -> Self {
        // Events are small and must not be delayed.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "failed to set TCP_NODELAY");
        }
        let socket = Self { socket, mark, stream_timeout: Some(timeouts.stream) };
        socket.set_timeout(timeouts.transfer);
        socket
    }

    /// Reads the first bytes, and leaves them in the socket.
    pub async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.peek(bytes).await
    }

    fn set_timeout(&self, timeout: Duration) {
        if let Err(error) = SockRef::from(&self.socket).set_tcp_user_timeout(Some(timeout)) {
            tracing::debug!(%error, "failed to set TCP_USER_TIMEOUT");
        }
    }

    /// Before the head of a stream is written.
    fn socket_to_write(&mut self) -> Pin<&mut TcpStream> {
        if self.mark.0.load(Ordering::Relaxed)
            && let Some(timeout) = self.stream_timeout.take()
        {
            self.set_timeout(timeout);
        }
        Pin::new(&mut self.socket)
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket_to_write().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket_to_write().poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn sockets_have_nodelay_and_the_timeout_of_what_they_send() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        let (timeouts, mark) = (ReadTimeouts::default(), StreamMark::default());
        let mut socket = ClientSocket::new(socket, timeouts, mark.clone());
        let timeout = |socket: &ClientSocket| SockRef::from(&socket.socket).tcp_user_timeout().expect("an option");
        assert!(socket.socket.nodelay().expect("an option"));
        let response = |kind: &str| Response::builder().header(CONTENT_TYPE, kind).body(()).expect("a response");
        for (kind, expected) in [("text/html", timeouts.transfer), ("text/event-stream", timeouts.stream)] {
            mark.set_for(&response(kind));
            socket.write_all(b"head").await.expect("sent");
            assert_eq!(timeout(&socket), Some(expected), "{kind}");
        }
    }
}
