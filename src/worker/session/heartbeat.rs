//! Proof of life, each interval, whatever else happens.

use std::time::Duration;

use app::protocol::worker::Heartbeat;

use super::{Refused, Session, close};
use crate::api::ApiError;
use crate::backoff::Backoff;
use crate::clock;
use crate::state::Input;

/// Beats until the token is refused.
pub async fn run(session: &Session) -> Refused {
    let mut registered = session.registered.subscribe();
    let mut backoff = Backoff::default();
    // The registration was the first one. The next comes anywhere in the interval, so that a fleet which came back together
    // does not beat together.
    if let Ok(interval) = registered.wait_for(Option::is_some).await.map(|known| interval(known.as_ref())) {
        pause(session, interval.mul_f64(clock::fraction())).await;
    }
    loop {
        // The sender is in the session itself.
        let Ok(interval) = registered.wait_for(Option::is_some).await.map(|known| interval(known.as_ref())) else {
            return std::future::pending().await;
        };
        let wait = match beat(session).await {
            Ok(()) => {
                session.answered.notify_waiters();
                backoff.reset();
                interval
            }
            Err(ApiError::Refused(sentence)) => return Refused(sentence),
            Err(ApiError::Transient { sentence, retry_after }) => {
                tracing::debug!("heartbeat: {sentence}");
                session.lost();
                backoff.next_after(clock::roll(), retry_after).min(interval)
            }
            // The connection that does the registering says it.
            Err(ApiError::Untrusted(sentence)) => {
                tracing::debug!("heartbeat: {sentence}");
                backoff.next(clock::roll()).min(interval)
            }
            Err(error) => {
                tracing::warn!("heartbeat: {error}");
                session.unknown.send_replace(true);
                session.answered.notify_waiters();
                interval
            }
        };
        pause(session, wait).await;
    }
}

/// Until the next one is due, or the host or a GPU must not be given out any more, or may be again.
async fn pause(session: &Session, wait: Duration) {
    let mut turned_away = session.turned_away.clone();
    let is_closed = *turned_away.borrow_and_update() > 0;
    let wait = if is_closed { wait.min(close::BEAT) } else { wait };
    tokio::select! {
        () = session.context.gpus.changed() => {}
        () = session.context.room.changed() => {}
        Ok(()) = turned_away.changed() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

fn interval(registration: Option<&super::Registration>) -> Duration {
    registration.map_or(Duration::from_secs(30), |known| known.interval)
}

async fn beat(session: &Session) -> Result<(), ApiError> {
    let attempts = session.attempts.borrow().clone();
    let telemetry = session.context.gpus.telemetry();
    let body = Heartbeat {
        worker_id: session.worker_id(),
        status: Some(if attempts.is_empty() { "idle" } else { "busy" }.to_owned()),
        current_job_id: attempts.first().map(|running| running.job_id.clone()),
        attempts,
        telemetry: telemetry.moments.clone(),
        unfit: session.context.unfit(),
    };
    let sent = clock::boot_ms();
    let answer = session.context.api.heartbeat(&body).await?;
    session.context.api.lease.renew(sent);
    session.contact();
    session.context.gpus.told(&telemetry);
    session.tell(Input::Desired(Box::new(answer.desired))).await;
    Ok(())
}
