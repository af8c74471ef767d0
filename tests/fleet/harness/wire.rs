//! What is between agents and a server: connections go to one port, until told otherwise, and fare as the network does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the network is. A connection that is held stays open, as with a cable that was pulled out: nobody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Everything passes.
    Fair,
    /// Nothing passes to the server.
    NothingUp,
    /// Nothing passes to agents.
    NothingDown,
    /// Nothing passes.
    Nothing,
    /// Everything takes so long, each way.
    Slow(Duration),
    /// Of event streams nothing passes before their end, as with a proxy that buffers answers.
    StreamsHeld,
    /// Connections on which nothing has come down for so long are ended, as by a proxy's time limit.
    IdleCut(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// See the module.
pub struct Wire {
    shared: Arc<Shared>,
    port: u16,
    task: JoinHandle<()>,
}

struct Shared {
    target: AtomicU16,
    weather: watch::Sender<Weather>,
    /// Counts how often all connections were cut.
    cuts: watch::Sender<u32>,
    streams: AtomicU32,
}

impl Wire {
    /// To the server on this port.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            target: AtomicU16::new(port),
            weather: watch::Sender::new(Weather::Fair),
            cuts: watch::Sender::new(0),
            streams: AtomicU32::new(0),
        });
        let task = tokio::spawn(pass_on(listener, Arc::clone(&shared)));
        Self { shared, port: own, task }
    }

    /// New connections go there from now on.
    pub fn turn_to(&self, port: u16) {
        self.shared.target.store(port, Ordering::SeqCst);
    }

    /// The weather from now on, also for connections that are there.
    pub fn be(&self, weather: Weather) {
        self.shared.weather.send_replace(weather);
    }

    /// Ends every connection that is there.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many event streams have come to agents.
    pub fn streams(&self) -> u32 {
        self.shared.streams.load(Ordering::SeqCst)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}

async fn pass_on(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connection(client, Arc::clone(&shared)));
    }
}

async fn connection(client: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::SeqCst))).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let both = async {
        tokio::join!(
            carry(from_client, to_server, Direction::Up, &shared),
            carry(from_server, to_client, Direction::Down, &shared),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = cuts.changed() => {}
    }
}

/// Until the sender has ended. Its end passes like its words.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, direction: Direction, shared: &Shared) {
    let mut weather = shared.weather.subscribe();
    let mut held = Held::default();
    let mut block = vec![0; 64 * 1024];
    loop {
        let count = tokio::select! {
            count = from.read(&mut block) => count.unwrap_or(0),
            () = idle(&shared.weather, direction) => 0,
        };
        let passes = |weather: &Weather| match weather {
            Weather::Nothing => false,
            Weather::NothingUp => direction == Direction::Down,
            Weather::NothingDown => direction == Direction::Up,
            Weather::Fair | Weather::Slow(_) | Weather::StreamsHeld | Weather::IdleCut(_) => true,
        };
        let Ok(now) = weather.wait_for(passes).await.map(|now| *now) else { return };
        if let Weather::Slow(time) = now {
            tokio::time::sleep(time).await;
        }
        if direction == Direction::Down && held.begins(&block[..count]) {
            shared.streams.fetch_add(1, Ordering::SeqCst);
        }
        let bytes = held.pass(&block[..count], now == Weather::StreamsHeld && count > 0);
        if to.write_all(&bytes).await.is_err() || count == 0 {
            let _ = to.shutdown().await;
            return;
        }
    }
}

/// Waits for as long as nothing may come.
async fn idle(weather: &watch::Sender<Weather>, direction: Direction) {
    let now = *weather.borrow();
    match now {
        Weather::IdleCut(limit) if direction == Direction::Down => tokio::time::sleep(limit).await,
        _ => std::future::pending().await,
    }
}

/// What of an event stream was not passed on yet.
#[derive(Default)]
struct Held {
    is_stream: bool,
    bytes: Vec<u8>,
}

impl Held {
    /// Whether these bytes are the head of an event stream, which is then all that follows on its connection.
    fn begins(&mut self, bytes: &[u8]) -> bool {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2_048)]).to_ascii_lowercase();
        let begins = !self.is_stream && head.starts_with("http/1.1 200") && head.contains("text/event-stream");
        self.is_stream |= begins;
        begins
    }

    /// What passes now; the head passes at once.
    fn pass(&mut self, bytes: &[u8], hold: bool) -> Vec<u8> {
        self.bytes.extend_from_slice(bytes);
        let head = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        match head.filter(|_| self.bytes.starts_with(b"HTTP/")) {
            _ if !hold || !self.is_stream => std::mem::take(&mut self.bytes),
            Some(head) => self.bytes.drain(..head).collect(),
            None => Vec::new(),
        }
    }
}
