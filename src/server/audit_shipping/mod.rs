//! Ships signed audit checkpoints as soon as they are signed. An attacker on the server's host can change its files and
//! has its key, but cannot change what was shipped.
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
        let mut retry_delay = MIN_RETRY_DELAY;
        loop {
            let appended = self.services.audit.signer.files().appended().notified();
            let retry_after = match self.send_all().await {
                Ok(()) => {
                    retry_delay = MIN_RETRY_DELAY;
                    None
                }
                Err(error) => {
                    tracing::warn!(%error, target = %self.target, "audit shipping: failed to ship checkpoints");
                    let delay = retry_delay;
                    retry_delay = MAX_RETRY_DELAY.min(retry_delay * 2);
                    Some(delay)
                }
            };
            let wait_for_next = async {
                match retry_after {
                    Some(retry_delay) => tokio::time::sleep(retry_delay).await,
                    None => appended.await,
                }
            };
            if shutdown.run_until_cancelled(wait_for_next).await.is_none() {
                return;
            }
        }
    }

    /// Ships all waiting checkpoints in batches.
    pub async fn send_all(&self) -> io::Result<()> {
        let result = self.send_batches().await;
        self.services.context.metrics.shipping.record_try(result.is_ok(), self.services.context.now());
        result
    }

    async fn send_batches(&self) -> io::Result<()> {
        let mut position = self.load_cursor().await?;
        loop {
            let text = self.next_batch(&mut position).await?;
            if text.is_empty() {
                return Ok(());
            }
            let request = self.target.send(&text);
            let timeout_error = || io::Error::new(ErrorKind::TimedOut, "timed out");
            tokio::time::timeout(self.timeout, request).await.unwrap_or_else(|_| Err(timeout_error()))?;
            position += text.len() as u64;
            self.save_cursor(position).await?;
            self.services.context.metrics.shipping.record_sent(text.lines().count() as u64);
        }
    }

    /// Returns the next whole lines. If the file is shorter than the position, it was replaced and is sent from the
    /// start.
    async fn next_batch(&self, position: &mut u64) -> io::Result<String> {
        let mut file = match fs::File::open(self.services.audit.signer.files().path()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        if file.metadata().await?.len() < *position {
            *position = 0;
        }
        file.seek(io::SeekFrom::Start(*position)).await?;
        let mut bytes = Vec::new();
        file.take(MAX_BATCH_BYTES).read_to_end(&mut bytes).await?;
        let complete_length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(complete_length);
        String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    async fn load_cursor(&self) -> io::Result<u64> {
        match fs::read_to_string(&self.cursor).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            text => Ok(text?.trim().parse().unwrap_or_default()),
        }
    }

    async fn save_cursor(&self, position: u64) -> io::Result<()> {
        let draft = self.cursor.with_extension("draft");
        fs::write(&draft, format!("{position}\n")).await?;
        fs::rename(&draft, &self.cursor).await
    }
}
