//! Heartbeats, sent in each interval whatever else happens.

use std::time::Duration;

use app::protocol::agents::HeartbeatRequest;

use super::{AgentSession, TokenRejected, close};
use crate::worker::api::OrchestratorError;
use crate::worker::backoff::Backoff;
use crate::worker::clock;
use crate::worker::state::AgentInput;

/// Sends heartbeats until the token is rejected.
pub async fn run(session: &AgentSession) -> TokenRejected {
    let mut registered = session.registration.subscribe();
    let mut backoff = Backoff::default();
    // The registration counts as the first one. The next is at a random time in the interval, so that a fleet that
    // reconnects together does not send heartbeats together.
    if let Ok(interval) =
        registered.wait_for(Option::is_some).await.map(|registration| heartbeat_interval(registration.as_ref()))
    {
        wait_for_next(session, interval.mul_f64(clock::random_fraction())).await;
    }
    loop {
        // Cannot fail: the session owns the sender.
        let Ok(interval) =
            registered.wait_for(Option::is_some).await.map(|registration| heartbeat_interval(registration.as_ref()))
        else {
            return std::future::pending().await;
        };
        registered.mark_unchanged();
        let wait = match send_heartbeat(session).await {
            Ok(()) => {
                session.heartbeat_answered.notify_waiters();
                backoff.reset();
                interval
            }
            Err(OrchestratorError::Unauthorized(sentence)) => return TokenRejected(sentence),
            Err(OrchestratorError::Transient { detail, retry_after }) => {
                tracing::debug!("heartbeat: {detail}");
                session.record_failure();
                backoff.next_delay_after(clock::random_u64(), retry_after).min(interval)
            }
            // The connection that registers reports it.
            Err(OrchestratorError::UntrustedCertificate(sentence)) => {
                tracing::debug!("heartbeat: {sentence}");
                backoff.next_delay(clock::random_u64()).min(interval)
            }
            // It was sent before the latest registration, which the orchestrator knows.
            Err(error) if registered.has_changed().unwrap_or_default() => {
                tracing::debug!("heartbeat: {error}");
                interval
            }
            Err(error) => {
                tracing::warn!("heartbeat: {error}");
                session.must_register.send_replace(true);
                session.heartbeat_answered.notify_waiters();
                interval
            }
        };
        wait_for_next(session, wait).await;
    }
}

/// Waits until the next one is due, or the availability of the host or a GPU changes.
async fn wait_for_next(session: &AgentSession, wait: Duration) {
    let mut decline_requests = session.decline_requests.clone();
    let is_closed = *decline_requests.borrow_and_update() > 0;
    let wait = if is_closed { wait.min(close::CLOSING_HEARTBEAT_INTERVAL) } else { wait };
    tokio::select! {
        () = session.context.gpus.changed() => {}
        () = session.context.disk_space.changed() => {}
        () = session.context.host_health.changed() => {}
        Ok(()) = decline_requests.changed() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

fn heartbeat_interval(registration: Option<&super::Registration>) -> Duration {
    registration.map_or(Duration::from_secs(30), |registration| registration.interval)
}

async fn send_heartbeat(session: &AgentSession) -> Result<(), OrchestratorError> {
    let attempts = session.attempts.borrow().clone();
    let telemetry = session.context.gpus.telemetry();
    let body = HeartbeatRequest {
        worker_id: session.worker_id(),
        status: Some(if attempts.is_empty() { "idle" } else { "busy" }.to_owned()),
        current_job_id: attempts.first().map(|running| running.job_id.clone()),
        attempts,
        telemetry: telemetry.samples.clone(),
        unhealthy_reason: session.context.unhealthy_reason(),
    };
    let sent_boot_ms = clock::boot_ms();
    let response = session.context.api.heartbeat(&body).await?;
    session.context.api.lease.renew(sent_boot_ms);
    session.record_contact();
    session.context.gpus.acknowledge(&telemetry);
    session.send_input(AgentInput::Desired(Box::new(response.desired))).await;
    Ok(())
}
