//! Orders to stop: `stop.json`, announced by a signal, and looked for each second in case the signal was lost.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::files::{AttemptDir, StopCause, StopOrder};

/// In case somebody else than the agent ends the supervisor.
const DEFAULT_GRACE_SECONDS: u64 = 30;

/// Where orders come from.
pub struct Orders {
    dir: AttemptDir,
    announced: Signal,
    terminated: Signal,
    seen: Option<StopOrder>,
}

impl Orders {
    /// Listens.
    pub fn new(dir: &AttemptDir) -> io::Result<Self> {
        Ok(Self {
            dir: dir.clone(),
            announced: signal(SignalKind::user_defined1())?,
            terminated: signal(SignalKind::terminate())?,
            seen: None,
        })
    }

    /// The order as it stands.
    pub fn current(&self) -> Option<StopOrder> {
        self.dir.read("stop.json").ok().flatten()
    }

    /// The next order that differs from the one before.
    pub async fn next(&mut self) -> StopOrder {
        loop {
            if let Some(order) = self.current().filter(|order| Some(*order) != self.seen) {
                self.seen = Some(order);
                return order;
            }
            tokio::select! {
                _ = self.announced.recv() => {}
                _ = self.terminated.recv() => if self.seen.is_none() {
                    // The host goes down, most likely: not the job's fault.
                    let order = StopOrder { cause: StopCause::Requeue, grace_seconds: DEFAULT_GRACE_SECONDS };
                    self.seen = Some(order);
                    return order;
                },
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    }
}
