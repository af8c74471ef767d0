//! The lease of an exclusive job: nothing of its trainer may be alive when it ends, whatever has become of the agent.
//!
//! It is read on a thread of its own, and asked for in memory: a disk that hangs only makes it older.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::files::{AttemptDir, Lease, Spec};

/// So long before its end everything is killed: dying takes a moment.
const MARGIN_MS: u64 = 2_000;
/// How often the clock is looked at. No timer: it has to notice that the host slept.
pub const LOOK: Duration = Duration::from_millis(200);

/// What is to be done about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet; so many ms are left until the kill.
    Holds { left_ms: u64 },
    /// The trainer has to be asked to stop, and has so many ms.
    Ending { grace_ms: u64 },
    /// The kill is due.
    Over,
}

/// Judges a lease at a moment of its clock, for a trainer that wants so many ms to end: it never gets more than half of a
/// new lease, or one lost heartbeat would stop it.
pub fn judge(now_ms: u64, lease: &Lease, grace_ms: u64) -> Verdict {
    let margin = MARGIN_MS.min(lease.timeout_ms / 4);
    let kill = lease.end_boot_ms.saturating_sub(margin);
    let ask = lease.end_boot_ms.saturating_sub(grace_ms.min(lease.timeout_ms / 2).max(margin));
    if now_ms >= kill {
        Verdict::Over
    } else if now_ms >= ask {
        Verdict::Ending { grace_ms: kill - now_ms }
    } else {
        Verdict::Holds { left_ms: kill - now_ms }
    }
}

/// The lease as it was read last.
#[derive(Debug, Clone)]
pub struct Known {
    grace_ms: u64,
    lease: Arc<Mutex<Option<Lease>>>,
}

impl Known {
    /// How it stands now. Without any lease it is over.
    pub fn verdict(&self) -> Verdict {
        let lease = *self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.map_or(Verdict::Over, |lease| judge(clock::boot_ms(), &lease, self.grace_ms))
    }

    fn read(&self, dir: &AttemptDir) {
        // What cannot be read, as it is being written, is as it was.
        if let Ok(Some(lease)) = dir.read("lease.json") {
            *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
        }
    }
}

/// Reads the lease of an attempt for as long as it is held.
pub struct Watch {
    known: Known,
    _reads: Sender<()>,
}

impl Watch {
    /// For an attempt; none if it is not exclusive. It was read once when this returns.
    pub fn of(dir: &AttemptDir, spec: &Spec) -> io::Result<Option<Self>> {
        if !spec.offer.exclusive {
            return Ok(None);
        }
        let grace_ms = spec.limits.stop_grace_seconds.saturating_mul(1_000);
        let known = Known { grace_ms, lease: Arc::default() };
        known.read(dir);
        let (reads, ended) = channel();
        let (dir, reader) = (dir.clone(), known.clone());
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || read_on(&dir, &reader, &ended))?;
        Ok(Some(Self { known, _reads: reads }))
    }

    /// What is known of it.
    pub fn known(&self) -> &Known {
        &self.known
    }
}

fn read_on(dir: &AttemptDir, known: &Known, ended: &Receiver<()>) {
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        known.read(dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::VERSION;

    const fn holds(left_ms: u64) -> Verdict {
        Verdict::Holds { left_ms }
    }

    const fn ending(grace_ms: u64) -> Verdict {
        Verdict::Ending { grace_ms }
    }

    #[test]
    fn the_kill_comes_before_the_end_and_the_notice_before_the_kill() {
        // Length of the lease, its end, the grace that was asked for, the moment.
        for (timeout_ms, end_boot_ms, grace_ms, now, expected) in [
            (120_000, 200_000, 30_000, 80_000, holds(118_000)),
            (120_000, 200_000, 30_000, 169_999, holds(28_001)),
            (120_000, 200_000, 30_000, 170_000, ending(28_000)),
            (120_000, 200_000, 30_000, 197_999, ending(1)),
            (120_000, 200_000, 30_000, 198_000, Verdict::Over),
            // A host that slept wakes up long after.
            (120_000, 200_000, 30_000, 9_000_000, Verdict::Over),
            // More than half of the lease is given to nobody.
            (120_000, 200_000, 600_000, 139_999, holds(58_001)),
            (120_000, 200_000, 600_000, 140_000, ending(58_000)),
            // No grace: killed at once.
            (120_000, 200_000, 0, 197_999, holds(1)),
            (120_000, 200_000, 0, 198_000, Verdict::Over),
            // A short lease has a short margin.
            (4_000, 10_000, 30_000, 7_999, holds(1_001)),
            (4_000, 10_000, 30_000, 8_000, ending(1_000)),
            (4_000, 10_000, 30_000, 9_000, Verdict::Over),
            // One that a broken file has made up.
            (0, 0, 30_000, 0, Verdict::Over),
            (u64::MAX, 1_000, 30_000, 0, Verdict::Over),
        ] {
            let lease = Lease { version: VERSION, end_boot_ms, timeout_ms };
            assert_eq!(judge(now, &lease, grace_ms), expected, "{lease:?} grace {grace_ms} at {now}");
        }
    }
}
