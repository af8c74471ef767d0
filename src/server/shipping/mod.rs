//! Signed checkpoints of the audit trail, sent elsewhere as they are signed: who gets at the server's host can change its
//! files and has its key, but not what has left.
//!
//! What waits is the file of checkpoints itself, behind what was sent: it needs no queue, and a restart loses nothing.

mod syslog;
pub mod target;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::sync::CancellationToken;

use self::target::Target;
use crate::service::Core;

/// So many bytes of lines are sent at once.
const PORTION: u64 = 64 << 10;
/// The first wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// How much of the file was sent, beside it.
const CURSOR: &str = "audit-shipped";

/// See the module.
pub struct Shipper {
    core: Arc<Core>,
    target: Target,
    cursor: PathBuf,
    timeout: Duration,
}

impl Shipper {
    /// Sends the checkpoints of a data directory there; one try takes so long at most.
    pub fn new(core: Arc<Core>, target: Target, data: &Path, timeout: Duration) -> Self {
        Self { core, target, cursor: data.join(CURSOR), timeout }
    }

    /// Sends what there is, and what comes, until it is over; tries again for as long as that takes.
    pub async fn keep(&self, shutdown: CancellationToken) {
        let mut wait = FIRST_WAIT;
        loop {
            let changed = self.core.signer.files().appended().notified();
            let next = match self.send_all().await {
                Ok(()) => {
                    wait = FIRST_WAIT;
                    None
                }
                Err(error) => {
                    tracing::warn!(%error, target = %self.target, "audit checkpoints not shipped");
                    let now = wait;
                    wait = LONGEST_WAIT.min(wait * 2);
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

    /// Sends what is there, portion by portion.
    pub async fn send_all(&self) -> io::Result<()> {
        let sent = self.send_portions().await;
        self.core.metrics.shipping.tried(sent.is_ok(), self.core.now());
        sent
    }

    async fn send_portions(&self) -> io::Result<()> {
        let mut from = self.sent().await?;
        loop {
            let text = self.portion(&mut from).await?;
            if text.is_empty() {
                return Ok(());
            }
            let sending = self.target.send(&text);
            let late = || io::Error::new(ErrorKind::TimedOut, "no answer in time");
            tokio::time::timeout(self.timeout, sending).await.unwrap_or_else(|_| Err(late()))?;
            from += text.len() as u64;
            self.note(from).await?;
            self.core.metrics.shipping.sent(text.lines().count() as u64);
        }
    }

    /// Whole lines behind what was sent. A file that is shorter is another one, and begins anew.
    async fn portion(&self, from: &mut u64) -> io::Result<String> {
        let mut file = match fs::File::open(self.core.signer.files().file()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        if file.metadata().await?.len() < *from {
            *from = 0;
        }
        file.seek(io::SeekFrom::Start(*from)).await?;
        let mut bytes = Vec::new();
        file.take(PORTION).read_to_end(&mut bytes).await?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    async fn sent(&self) -> io::Result<u64> {
        match fs::read_to_string(&self.cursor).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            text => Ok(text?.trim().parse().unwrap_or_default()),
        }
    }

    async fn note(&self, sent: u64) -> io::Result<()> {
        let draft = self.cursor.with_extension("draft");
        fs::write(&draft, format!("{sent}\n")).await?;
        fs::rename(&draft, &self.cursor).await
    }
}
