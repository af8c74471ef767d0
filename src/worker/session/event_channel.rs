//! The channel on which the orchestrator pushes events: the stream, or long polls if a proxy buffers the stream.

use std::time::Duration;

use tokio::time::Instant;

use super::stream::{self, StreamEnd};
use super::{AgentSession, TokenRejected};
use crate::worker::api::OrchestratorError;
use crate::worker::backoff::Backoff;
use crate::worker::clock;
use crate::worker::state::AgentInput;

/// A connection that lasted this long counts as stable.
const STABLE_CONNECTION: Duration = Duration::from_secs(10);
/// Minimum interval between polls, whatever the server does.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Registers, listens and reconnects until the token is rejected.
pub async fn run(session: &AgentSession) -> TokenRejected {
    let mut backoff = Backoff::default();
    let mut poll_until = None;
    let mut decline_requests = session.decline_requests.clone();
    loop {
        if *decline_requests.borrow_and_update() > 0 {
            session.decline_offers().await;
        }
        if let Err(error) = session.register().await {
            session.record_failure();
            let is_untrusted = matches!(error, OrchestratorError::UntrustedCertificate(_));
            let retry_after = match error {
                OrchestratorError::Unauthorized(sentence) => return TokenRejected(sentence),
                OrchestratorError::Transient { retry_after, .. } => retry_after,
                _ => None,
            };
            let wait = backoff.next_delay_after(clock::random_u64(), retry_after);
            let seconds = wait.as_secs_f32().round();
            if is_untrusted {
                tracing::error!("{error}; retrying in {seconds} s");
            } else {
                tracing::warn!("cannot register: {error}; retrying in {seconds} s");
            }
            wait_for_retry(session, wait, retry_after.is_none()).await;
            continue;
        }
        let started_at = Instant::now();
        let stream_end = tokio::select! {
            biased;
            Ok(()) = decline_requests.changed() => StreamEnd::Declining,
            stream_end = listen(session, poll_until.filter(|until| *until > started_at)) => stream_end,
        };
        if started_at.elapsed() > STABLE_CONNECTION {
            backoff.reset();
        }
        let mut is_requested = false;
        let wait = match stream_end {
            StreamEnd::TokenRejected(sentence) => return TokenRejected(sentence),
            StreamEnd::Silent => {
                tracing::warn!("the stream is silent (a proxy may buffer it): polling instead");
                poll_until = Some(Instant::now() + session.context.config.polling_period);
                Duration::ZERO
            }
            StreamEnd::PollingOver | StreamEnd::Declining => Duration::ZERO,
            StreamEnd::Lost { sentence, retry } => {
                is_requested = retry.is_some();
                let wait = retry.unwrap_or_else(|| backoff.next_delay(clock::random_u64()));
                tracing::info!("{sentence}; reconnecting in {} s", wait.as_secs_f32().round());
                wait
            }
        };
        wait_for_retry(session, wait, !is_requested).await;
    }
}

/// Waits before the next try. A successful heartbeat shows that the orchestrator is back and ends the wait, unless the
/// orchestrator itself asked for it.
async fn wait_for_retry(session: &AgentSession, wait: Duration, ends_early: bool) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = session.heartbeat_answered.notified(), if ends_early => {}
    }
}

/// Listens until the channel ends; an agent that accepts no more jobs does not listen.
async fn listen(session: &AgentSession, poll_until: Option<Instant>) -> StreamEnd {
    if let Some(deadline) = poll_until.filter(|_| !session.is_closing()) {
        return poll(session, deadline).await;
    }
    let stream =
        async { if session.is_closing() { std::future::pending().await } else { stream::listen(session).await } };
    tokio::select! {
        stream_end = stream => stream_end,
        () = session.wait_until_unknown() => {
            StreamEnd::Lost { sentence: "the orchestrator does not know this session".to_owned(), retry: None }
        }
    }
}

/// Long polls until a deadline or a failure.
async fn poll(session: &AgentSession, deadline: Instant) -> StreamEnd {
    while Instant::now() < deadline {
        let started_at = Instant::now();
        match session.context.api.long_poll().await {
            Ok(response) => {
                session.record_contact();
                session.send_input(AgentInput::Desired(Box::new(response.desired))).await;
            }
            Err(OrchestratorError::Unauthorized(sentence)) => return StreamEnd::TokenRejected(sentence),
            Err(error) => return StreamEnd::Lost { sentence: format!("the poll failed: {error}"), retry: None },
        }
        tokio::time::sleep_until(started_at + MIN_POLL_INTERVAL).await;
    }
    StreamEnd::PollingOver
}
