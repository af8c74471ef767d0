//! A network proxy between agents and a server: it forwards to one port, which can be changed, and simulates network
//! conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The condition of the network. Blocked connections stay open, as with an unplugged cable: neither side notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkCondition {
    /// Everything passes.
    Normal,
    /// Nothing passes to the server.
    DropUp,
    /// Nothing passes to agents.
    DropDown,
    /// Nothing passes.
    DropAll,
    /// Everything is delayed this long in each direction.
    Slow(Duration),
    /// Event streams are held back until they end, as by a buffering proxy.
    BufferStreams,
    /// Connections without data from the server for this long are closed, as by a proxy's timeout.
    CloseIdle(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

pub struct NetworkProxy {
    shared: Arc<ProxyState>,
    port: u16,
    task: JoinHandle<()>,
}

struct ProxyState {
    target: AtomicU16,
    condition: watch::Sender<NetworkCondition>,
    /// Counts how often all connections were closed.
    cuts: watch::Sender<u32>,
    streams: AtomicU32,
}

impl NetworkProxy {
    /// Creates a proxy to the server on this port.
    pub async fn new(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let listen_port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(ProxyState {
            target: AtomicU16::new(port),
            condition: watch::Sender::new(NetworkCondition::Normal),
            cuts: watch::Sender::new(0),
            streams: AtomicU32::new(0),
        });
        let task = tokio::spawn(accept_loop(listener, Arc::clone(&shared)));
        Self { shared, port: listen_port, task }
    }

    /// Sends new connections to this port.
    pub fn set_target(&self, port: u16) {
        self.shared.target.store(port, Ordering::SeqCst);
    }

    /// Sets the condition, also for open connections.
    pub fn set_condition(&self, condition: NetworkCondition) {
        self.shared.condition.send_replace(condition);
    }

    /// Closes all open connections.
    pub fn close_all(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Returns the number of event streams so far.
    pub fn stream_count(&self) -> u32 {
        self.shared.streams.load(Ordering::SeqCst)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        self.task.abort();
        self.close_all();
    }
}

async fn accept_loop(listener: TcpListener, shared: Arc<ProxyState>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(handle_connection(client, Arc::clone(&shared)));
    }
}

async fn handle_connection(client: TcpStream, shared: Arc<ProxyState>) {
    let mut cuts = shared.cuts.subscribe();
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::SeqCst))).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let both = async {
        tokio::join!(
            copy_direction(from_client, to_server, Direction::Up, &shared),
            copy_direction(from_server, to_client, Direction::Down, &shared),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = cuts.changed() => {}
    }
}

/// Copies until the sender closes, and forwards the close.
async fn copy_direction(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, direction: Direction, shared: &ProxyState) {
    let mut conditions = shared.condition.subscribe();
    let mut buffer = StreamBuffer::default();
    let mut block = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            count = from.read(&mut block) => count.unwrap_or(0),
            () = wait_until_open(&shared.condition, direction) => 0,
        };
        let passes = |condition: &NetworkCondition| match condition {
            NetworkCondition::DropAll => false,
            NetworkCondition::DropUp => direction == Direction::Down,
            NetworkCondition::DropDown => direction == Direction::Up,
            NetworkCondition::Normal
            | NetworkCondition::Slow(_)
            | NetworkCondition::BufferStreams
            | NetworkCondition::CloseIdle(_) => true,
        };
        let Ok(condition) = conditions.wait_for(passes).await.map(|condition| *condition) else { return };
        if let NetworkCondition::Slow(time) = condition {
            tokio::time::sleep(time).await;
        }
        if direction == Direction::Down && buffer.is_stream_head(&block[..count]) {
            shared.streams.fetch_add(1, Ordering::SeqCst);
        }
        let bytes = buffer.release(&block[..count], condition == NetworkCondition::BufferStreams && count > 0);
        if to.write_all(&bytes).await.is_err() || count == 0 {
            let _ = to.shutdown().await;
            return;
        }
    }
}

/// Waits until data may pass.
async fn wait_until_open(conditions: &watch::Sender<NetworkCondition>, direction: Direction) {
    let condition = *conditions.borrow();
    match condition {
        NetworkCondition::CloseIdle(limit) if direction == Direction::Down => tokio::time::sleep(limit).await,
        _ => std::future::pending().await,
    }
}

/// The part of an event stream that was not forwarded yet.
#[derive(Default)]
struct StreamBuffer {
    is_stream: bool,
    bytes: Vec<u8>,
}

impl StreamBuffer {
    /// Returns whether these bytes are the head of an event stream; all further data of the connection belongs to it.
    fn is_stream_head(&mut self, bytes: &[u8]) -> bool {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2_048)]).to_ascii_lowercase();
        let begins = !self.is_stream && head.starts_with("http/1.1 200") && head.contains("text/event-stream");
        self.is_stream |= begins;
        begins
    }

    /// Returns what may pass now; the head always does.
    fn release(&mut self, bytes: &[u8], hold: bool) -> Vec<u8> {
        self.bytes.extend_from_slice(bytes);
        let head = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        match head.filter(|_| self.bytes.starts_with(b"HTTP/")) {
            _ if !hold || !self.is_stream => std::mem::take(&mut self.bytes),
            Some(head) => self.bytes.drain(..head).collect(),
            None => Vec::new(),
        }
    }
}
