//! Ships signed audit checkpoints as soon as they are signed. An attacker on the server's host can change its files and has its
//! key, but cannot change what was shipped.
//!
//! The file of checkpoints with the position that was sent is the queue, so a restart loses nothing.

pub mod destination;
mod syslog;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::sync::CancellationToken;

use self::destination::AuditDestination;
use crate::service::Services;

/// Bytes of lines per request.
const MAX_BATCH_BYTES: u64 = 64 << 10;
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The file with the sent position.
const CURSOR_FILE: &str = "audit-shipped";

pub struct AuditShipper {
    services: Arc<Services>,
    target: AuditDestination,
    cursor: PathBuf,
    timeout: Duration,
}

impl AuditShipper {
    /// Creates a shipper for the checkpoints of a data directory with a timeout per try.
    pub fn new(services: Arc<Services>, target: AuditDestination, data: &Path, timeout: Duration) -> Self {
        Self { services, target, cursor: data.join(CURSOR_FILE), timeout }
    }

    /// Ships checkpoints until shutdown, with retries.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut wait = MIN_RETRY_DELAY;
        loop {
            let changed = self.services.audit.signer.files().appended().notified();
            let next = match self.send_all().await {
                Ok(()) => {
                    wait = MIN_RETRY_DELAY;
                    None
                }
                Err(error) => {
                    tracing::warn!(%error, target = %self.target, "audit shipping: failed to ship checkpoints");
                    let now = wait;
                    wait = MAX_RETRY_DELAY.min(wait * 2);
                    Some(now)
                }
            };
            let again = async {
                match next {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => changed.await,
                }
            };
            if shutdown.run_until_cancelled(again).await.is_none() {
                return;
            }
        }
    }

    /// Ships all waiting checkpoints in batches.
    pub async fn send_all(&self) -> io::Result<()> {
        let sent = self.send_batches().await;
        self.services.context.metrics.shipping.record_try(sent.is_ok(), self.services.context.now());
        sent
    }

    async fn send_batches(&self) -> io::Result<()> {
        let mut from = self.load_cursor().await?;
        loop {
            let text = self.next_batch(&mut from).await?;
            if text.is_empty() {
                return Ok(());
            }
            let sending = self.target.send(&text);
            let late = || io::Error::new(ErrorKind::TimedOut, "timed out");
            tokio::time::timeout(self.timeout, sending).await.unwrap_or_else(|_| Err(late()))?;
            from += text.len() as u64;
            self.save_cursor(from).await?;
            self.services.context.metrics.shipping.record_sent(text.lines().count() as u64);
        }
    }

    /// Returns the next whole lines. If the file is shorter than the position, it was replaced and is sent from the start.
    async fn next_batch(&self, from: &mut u64) -> io::Result<String> {
        let mut file = match fs::File::open(self.services.audit.signer.files().path()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        if file.metadata().await?.len() < *from {
            *from = 0;
        }
        file.seek(io::SeekFrom::Start(*from)).await?;
        let mut bytes = Vec::new();
        file.take(MAX_BATCH_BYTES).read_to_end(&mut bytes).await?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(complete);
        String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    async fn load_cursor(&self) -> io::Result<u64> {
        match fs::read_to_string(&self.cursor).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            text => Ok(text?.trim().parse().unwrap_or_default()),
        }
    }

    async fn save_cursor(&self, sent: u64) -> io::Result<()> {
        let draft = self.cursor.with_extension("draft");
        fs::write(&draft, format!("{sent}\n")).await?;
        fs::rename(&draft, &self.cursor).await
    }
}
