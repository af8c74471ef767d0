//! From the trainer's start to its end, by itself or by a notice. There is one way to stop it, whatever the reason: a
//! signal, the stop file, the grace, and then the whole tree.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::orders::{Notice, Orders};
use super::tree::Reaper;
use crate::clock;
use crate::files::{AttemptDir, StopCause, write_public};

const SIGTERM: i32 = nix::sys::signal::Signal::SIGTERM as i32;
/// The exit code of those who end in order on SIGTERM, by convention.
const TERMINATED: i32 = 128 + SIGTERM;
/// Signals to a whole service come within this.
const TOGETHER: Duration = Duration::from_millis(500);

/// What the stop file says.
#[derive(Debug, Serialize)]
struct StopFile {
    reason: StopCause,
    /// In Unix seconds.
    deadline: i64,
    grace_seconds: u64,
}

/// Waits for the trainer's end. Answers with the reason, if it had not ended before it was asked.
pub async fn watch(dir: &AttemptDir, orders: &mut Orders, reaper: &mut Reaper) -> Option<StopCause> {
    let mut notice = tokio::select! {
        biased;
        () = reaper.trainer_ended() => return told_meanwhile(orders, reaper).await,
        notice = orders.next() => notice,
    };
    // A disk that hangs may have held up the look for it.
    if reaper.has_trainer_ended() {
        return was_told(reaper).then_some(notice.cause);
    }
    let began = Instant::now();
    say(dir, &notice, Duration::ZERO);
    reaper.ask_to_stop();
    loop {
        let before = notice;
        tokio::select! {
            biased;
            () = reaper.trainer_ended() => break,
            () = tokio::time::sleep_until(began + notice.grace) => break,
            // A later one may shorten the grace, or change the reason.
            newer = orders.next() => notice = newer,
        }
        if notice != before && !notice.grace.is_zero() {
            say(dir, &notice, began.elapsed());
        }
    }
    Some(notice.cause)
}

/// The trainer may look for the file between two steps; it is there whole.
fn say(dir: &AttemptDir, notice: &Notice, passed: Duration) {
    tracing::info!("stopping: {:?}, grace {} s", notice.cause, notice.grace.as_secs_f32());
    let left = notice.grace.saturating_sub(passed);
    let deadline = (clock::now().0 + i64::try_from(left.as_millis()).unwrap_or(i64::MAX / 2)) / 1_000;
    let content = StopFile { reason: notice.cause, deadline, grace_seconds: notice.grace.as_secs() };
    let text = serde_json::to_vec(&content).unwrap_or_default();
    if let Err(error) = write_public(&dir.stop_file(), &text) {
        tracing::warn!("the stop file cannot be written, the signal has to do: {error}");
        // On a full disk, an empty one says as much as that it is time.
        let _ = std::fs::File::create(dir.stop_file());
    }
}

/// A trainer that died of SIGTERM was most likely told together with its supervisor, by whoever ends the whole host: then
/// that was an order, and no failure of the job.
async fn told_meanwhile(orders: &mut Orders, reaper: &mut Reaper) -> Option<StopCause> {
    if !was_told(reaper) {
        return None;
    }
    tokio::time::timeout(TOGETHER, orders.next()).await.ok().map(|notice| notice.cause)
}

fn was_told(reaper: &mut Reaper) -> bool {
    matches!(reaper.trainer_status(), (_, Some(SIGTERM)) | (Some(TERMINATED), _))
}
