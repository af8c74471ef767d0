//! From the trainer's start to its exit, by itself or after a stop request. There is one way to stop it, whatever the
//! cause: a signal, the stop file, the grace period, and then all its processes are killed.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::reaper::Reaper;
use super::stop_requests::{StopRequest, StopRequests};
use crate::worker::clock;
use crate::worker::files::{AttemptDir, StopCause, write_public};

const SIGTERM: i32 = nix::sys::signal::Signal::SIGTERM as i32;
/// The conventional exit code of a clean exit on SIGTERM.
const SIGTERM_EXIT_CODE: i32 = 128 + SIGTERM;
/// Signals to a whole service arrive within this time.
const SERVICE_STOP_WINDOW: Duration = Duration::from_millis(500);

/// The content of the stop file.
#[derive(Debug, Serialize)]
struct StopFile {
    reason: StopCause,
    /// In Unix seconds.
    deadline: i64,
    grace_seconds: u64,
}

/// Waits for the trainer's exit. Returns the cause, if it was still running when it was asked to stop.
pub async fn run_until_exit(
    dir: &AttemptDir,
    stop_requests: &mut StopRequests,
    reaper: &mut Reaper,
) -> Option<StopCause> {
    let mut request = tokio::select! {
        biased;
        () = reaper.wait_for_trainer() => return stop_cause_after_sigterm(stop_requests, reaper).await,
        request = stop_requests.next() => request,
    };
    // A hung disk may have delayed the request.
    if reaper.has_trainer_ended() {
        return died_of_sigterm(reaper).then_some(request.cause);
    }
    let started_at = Instant::now();
    write_stop_file(dir, &request, Duration::ZERO);
    reaper.send_sigterm();
    loop {
        let previous = request;
        tokio::select! {
            biased;
            () = reaper.wait_for_trainer() => break,
            () = tokio::time::sleep_until(started_at + request.grace) => break,
            // A later request may shorten the grace period or change the cause.
            newer = stop_requests.next() => request = newer,
        }
        if request != previous && !request.grace.is_zero() {
            write_stop_file(dir, &request, started_at.elapsed());
        }
    }
    Some(request.cause)
}

/// The trainer may look for the file between two steps; it is written atomically.
fn write_stop_file(dir: &AttemptDir, request: &StopRequest, elapsed: Duration) {
    tracing::info!("stopping: {:?}, grace {} s", request.cause, request.grace.as_secs_f32());
    let left = request.grace.saturating_sub(elapsed);
    let deadline = (clock::now().0 + i64::try_from(left.as_millis()).unwrap_or(i64::MAX / 2)) / 1_000;
    let content = StopFile { reason: request.cause, deadline, grace_seconds: request.grace.as_secs() };
    let text = serde_json::to_vec(&content).unwrap_or_default();
    if let Err(error) = write_public(&dir.stop_file(), &text) {
        tracing::warn!("cannot write the stop file, sending only the signal: {error}");
        // On a full disk, an empty file still says that it is time to stop.
        let _ = std::fs::File::create(dir.stop_file());
    }
}

/// A trainer that died of SIGTERM probably got it together with its supervisor, when the whole host was shut down: then
/// it is a stop request, and no failure of the job.
async fn stop_cause_after_sigterm(stop_requests: &mut StopRequests, reaper: &mut Reaper) -> Option<StopCause> {
    if !died_of_sigterm(reaper) {
        return None;
    }
    tokio::time::timeout(SERVICE_STOP_WINDOW, stop_requests.next()).await.ok().map(|request| request.cause)
}

fn died_of_sigterm(reaper: &mut Reaper) -> bool {
    matches!(reaper.trainer_exit(), (_, Some(SIGTERM)) | (Some(SIGTERM_EXIT_CODE), _))
}
