//! Log lines on their way to stderr. A thread of its own writes them, so a reader that stopped reading, or is gone, holds up
//! nothing that logs: a pager, a terminal after Ctrl-S, a pipe whose other end has ended.
//!
//! Of our own, because lines must also be flushed before the process becomes another program (`exec`), which writers that
//! flush when they are dropped cannot do.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How many bytes of lines may wait; newer lines are dropped.
const MAX_WAITING: usize = 4 << 20;
/// How long a process that ends waits for its last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// From now on, lines are written to `out` by a thread of their own. Only the first call counts.
pub fn start(out: impl Write + Send + 'static) {
    QUEUE.get_or_init(|| Queue::to(out));
}

/// Queues a line, or drops it if too many wait. `false` before [`start`].
pub fn push(line: &[u8]) -> bool {
    QUEUE.get().map(|queue| queue.push(line)).is_some()
}

/// Waits until what was logged is written, a second at most.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LAST_LINES);
    }
}

/// Queues what is written to it.
#[derive(Debug, Clone, Copy)]
pub struct Queued;

impl Write for Queued {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Message {
    Line(Vec<u8>),
    Flushed(SyncSender<()>),
}

struct Queue {
    messages: Sender<Message>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of lines that are not written yet.
    waiting: AtomicUsize,
    /// Lines dropped since the last one that was written.
    dropped: AtomicU64,
}

impl Queue {
    fn to(out: impl Write + Send + 'static) -> Self {
        let (messages, received) = channel();
        let queue = Self { messages, state: Arc::default() };
        let state = Arc::clone(&queue.state);
        // Without a thread, lines are lost and the program runs all the same.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || write(out, &received, &state));
        queue
    }

    fn push(&self, line: &[u8]) {
        if self.state.waiting.fetch_add(line.len(), Ordering::Relaxed) + line.len() > MAX_WAITING {
            self.state.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // It fails where there is no thread.
        let _ = self.messages.send(Message::Line(line.to_owned()));
    }

    fn flush(&self, patience: Duration) {
        let (flushed, written) = sync_channel(1);
        if self.messages.send(Message::Flushed(flushed)).is_ok() {
            // After that, unwritten lines are lost.
            let _ = written.recv_timeout(patience);
        }
    }
}

fn write(mut out: impl Write, messages: &Receiver<Message>, state: &State) {
    for message in messages {
        match message {
            Message::Line(line) => {
                // There is no other place to say that stderr cannot be written to.
                let _ = out.write_all(&line);
                state.waiting.fetch_sub(line.len(), Ordering::Relaxed);
                let lines = state.dropped.swap(0, Ordering::Relaxed);
                if lines > 0 {
                    tracing::warn!(lines, "log lines were dropped: stderr was not read");
                }
            }
            Message::Flushed(flushed) => {
                let _ = out.flush();
                // The one that waits may have given up.
                let _ = flushed.try_send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};

    use super::*;

    #[test]
    fn lines_arrive_in_order_and_are_flushed() {
        let (mut reader, writer) = pipe().expect("a pipe");
        let queue = Queue::to(writer);
        for number in 0..100 {
            queue.push(format!("{number}\n").as_bytes());
        }
        queue.flush(Duration::from_mins(1));
        drop(queue);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text.lines().map(str::parse).collect::<Result<Vec<u32>, _>>(), Ok((0..100).collect()));
    }

    #[test]
    fn a_reader_that_does_not_read_or_is_gone_holds_up_nothing() {
        let (reader, writer) = pipe().expect("a pipe");
        let queue = Queue::to(writer);
        // More than a pipe and the queue hold.
        let line = [b'x'; 1_000];
        for _ in 0..(MAX_WAITING + (1 << 20)) / line.len() {
            queue.push(&line);
        }
        assert!(queue.state.dropped.load(Ordering::Relaxed) > 0);
        queue.flush(Duration::from_millis(1));
        drop(reader);
        queue.push(b"nobody reads this");
        // The thread still takes lines after a write has failed.
        while queue.state.dropped.load(Ordering::Relaxed) > 0 {
            queue.push(b"x");
            thread::yield_now();
        }
    }
}
