//! The channel on which the orchestrator pushes events: the stream, or long polls if a proxy buffers the stream.

use std::time::Duration;

use tokio::time::Instant;

use super::stream::{self, StreamEnd};
use super::{AgentSession, TokenRejected};
use crate::api::OrchestratorError;
use crate::backoff::Backoff;
use crate::clock;
use crate::state::AgentInput;

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
            let after = match error {
                OrchestratorError::Unauthorized(sentence) => return TokenRejected(sentence),
                OrchestratorError::Transient { retry_after, .. } => retry_after,
                _ => None,
            };
            let wait = backoff.next_delay_after(clock::random_u64(), after);
            let seconds = wait.as_secs_f32().round();
            if is_untrusted {
                tracing::error!("{error}; retrying in {seconds} s");
            } else {
                tracing::warn!("cannot register: {error}; retrying in {seconds} s");
            }
            wait_for_retry(session, wait, after.is_none()).await;
            continue;
        }
        let began = Instant::now();
        let ended = tokio::select! {
            biased;
            Ok(()) = decline_requests.changed() => StreamEnd::Declining,
            ended = listen(session, poll_until.filter(|until| *until > began)) => ended,
        };
        if began.elapsed() > STABLE_CONNECTION {
            backoff.reset();
        }
        let mut is_requested = false;
        let wait = match ended {
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
    if let Some(until) = poll_until.filter(|_| !session.is_closing()) {
        return poll(session, until).await;
    }
    let stream =
        async { if session.is_closing() { std::future::pending().await } else { stream::listen(session).await } };
    tokio::select! {
        ended = stream => ended,
        () = session.wait_until_unknown() => {
            StreamEnd::Lost { sentence: "the orchestrator does not know this session".to_owned(), retry: None }
        }
    }
}

/// Long polls until a deadline or a failure.
async fn poll(session: &AgentSession, until: Instant) -> StreamEnd {
    while Instant::now() < until {
        let began = Instant::now();
        match session.context.api.long_poll().await {
            Ok(answer) => {
                session.record_contact();
                session.send_input(AgentInput::Desired(Box::new(answer.desired))).await;
            }
            Err(OrchestratorError::Unauthorized(sentence)) => return StreamEnd::TokenRejected(sentence),
            Err(error) => return StreamEnd::Lost { sentence: format!("the poll failed: {error}"), retry: None },
        }
        tokio::time::sleep_until(began + MIN_POLL_INTERVAL).await;
    }
    StreamEnd::PollingOver
}
