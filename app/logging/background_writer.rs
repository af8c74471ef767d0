//! Writes log lines to stderr from a separate thread, so that a reader that is slow or has exited does not block the
//! program: a pager, a terminal after Ctrl-S, a pipe whose other end has closed.
//!
//! This is our own implementation because lines must also be flushed before `exec` replaces the process. Writers that
//! flush on drop cannot do that.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};

/// Maximum number of queued bytes; newer lines are dropped.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// How long an exiting process waits until its last lines are written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static LOG_QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Starts the thread that writes log lines to `out`. Only the first call has an effect.
pub fn start(out: impl Write + Send + 'static) {
    LOG_QUEUE.get_or_init(|| {
        // On failure, the mode in which it was opened stays.
        let _ = set_append_mode(&io::stderr());
        LogQueue::spawn(out)
    });
}

/// Sets append mode on a log file, so that it can be truncated while it is written (`copytruncate` of logrotate)
/// without leaving a hole.
fn set_append_mode(log: &impl AsFd) -> Result<(), Errno> {
    let kind = SFlag::from_bits_truncate(fstat(log)?.st_mode) & SFlag::S_IFMT;
    if kind == SFlag::S_IFREG {
        let flags = OFlag::from_bits_truncate(fcntl(log, FcntlArg::F_GETFL)?);
        fcntl(log, FcntlArg::F_SETFL(flags | OFlag::O_APPEND))?;
    }
    Ok(())
}

/// Queues a line, or drops it if the queue is full. Returns `false` before [`start`].
pub fn push(line: &[u8]) -> bool {
    LOG_QUEUE.get().map(|queue| queue.push(line)).is_some()
}

/// Waits until all queued lines are written, for at most one second.
pub fn flush() {
    if let Some(queue) = LOG_QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// A writer that queues its input.
#[derive(Debug, Clone, Copy)]
pub struct LogQueueWriter;

impl Write for LogQueueWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum QueueMessage {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

struct LogQueue {
    messages: Sender<QueueMessage>,
    counters: Arc<QueueCounters>,
}

#[derive(Default)]
struct QueueCounters {
    /// Bytes that are not written yet.
    queued_bytes: AtomicUsize,
    /// Lines that were dropped since the last line was written.
    dropped_lines: AtomicU64,
}

impl LogQueue {
    fn spawn(out: impl Write + Send + 'static) -> Self {
        let (messages, receiver) = channel();
        let queue = Self { messages, counters: Arc::default() };
        let counters = Arc::clone(&queue.counters);
        // If the thread cannot be started, lines are lost but the program runs.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || run_writer(out, &receiver, &counters));
        queue
    }

    fn push(&self, line: &[u8]) {
        if self.counters.queued_bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len() > MAX_QUEUED_BYTES {
            self.counters.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.counters.dropped_lines.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Fails if the thread does not run.
        let _ = self.messages.send(QueueMessage::Line(line.to_owned()));
    }

    fn flush(&self, timeout: Duration) {
        let (sender, receiver) = sync_channel(1);
        if self.messages.send(QueueMessage::Flush(sender)).is_ok() {
            // After the timeout, unwritten lines are lost.
            let _ = receiver.recv_timeout(timeout);
        }
    }
}

fn run_writer(mut out: impl Write, messages: &Receiver<QueueMessage>, counters: &QueueCounters) {
    for message in messages {
        match message {
            QueueMessage::Line(line) => {
                // A failure to write to stderr cannot be reported anywhere.
                let _ = out.write_all(&line);
                counters.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                let lines = counters.dropped_lines.swap(0, Ordering::Relaxed);
                if lines > 0 {
                    tracing::warn!(lines, "logging: dropped lines because stderr was not read");
                }
            }
            QueueMessage::Flush(flushed) => {
                let _ = out.flush();
                // The waiting caller may have timed out.
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
        let queue = LogQueue::spawn(writer);
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
    fn stalled_or_closed_reader_does_not_block_logging() {
        let (reader, writer) = pipe().expect("a pipe");
        let queue = LogQueue::spawn(writer);
        // More than a pipe and the queue can hold.
        let line = [b'x'; 1_000];
        for _ in 0..(MAX_QUEUED_BYTES + (1 << 20)) / line.len() {
            queue.push(&line);
        }
        assert!(queue.counters.dropped_lines.load(Ordering::Relaxed) > 0);
        queue.flush(Duration::from_millis(1));
        drop(reader);
        queue.push(b"never read");
        // The thread continues after a failed write.
        while queue.counters.dropped_lines.load(Ordering::Relaxed) > 0 {
            queue.push(b"x");
            thread::yield_now();
        }
    }
}
