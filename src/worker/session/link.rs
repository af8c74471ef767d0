//! The line on which the orchestrator pushes: the stream, or long polls where a proxy holds the stream back.

use std::time::Duration;

use tokio::time::Instant;

use super::stream::{self, End};
use super::{Refused, Session};
use crate::api::ApiError;
use crate::backoff::Backoff;
use crate::clock;
use crate::state::Input;

/// A connection that lived so long was a good one.
const GOOD: Duration = Duration::from_secs(10);
/// Between polls that were answered at once, whatever the server does.
const SHORTEST_POLL: Duration = Duration::from_millis(500);

/// Registers, listens, and comes back, until the token is refused.
pub async fn run(session: &Session) -> Refused {
    let mut backoff = Backoff::default();
    let mut poll_until = None;
    let mut turned_away = session.turned_away.clone();
    loop {
        if *turned_away.borrow_and_update() > 0 {
            session.turn_away().await;
        }
        if let Err(error) = session.register().await {
            session.lost();
            let is_untrusted = matches!(error, ApiError::Untrusted(_));
            let after = match error {
                ApiError::Refused(sentence) => return Refused(sentence),
                ApiError::Transient { retry_after, .. } => retry_after,
                _ => None,
            };
            let wait = backoff.next_after(clock::roll(), after);
            let seconds = wait.as_secs_f32().round();
            if is_untrusted {
                tracing::error!("{error}; trying again in {seconds} s");
            } else {
                tracing::warn!("cannot register: {error}; trying again in {seconds} s");
            }
            wait_or_answer(session, wait, after.is_none()).await;
            continue;
        }
        let began = Instant::now();
        let ended = tokio::select! {
            biased;
            Ok(()) = turned_away.changed() => End::TurnedAway,
            ended = listen(session, poll_until.filter(|until| *until > began)) => ended,
        };
        if began.elapsed() > GOOD {
            backoff.reset();
        }
        let mut is_asked = false;
        let wait = match ended {
            End::Refused(sentence) => return Refused(sentence),
            End::Silent => {
                tracing::warn!("the stream brings nothing (a proxy may hold it back): polling instead");
                poll_until = Some(Instant::now() + session.context.config.poll_for);
                Duration::ZERO
            }
            End::PollingOver | End::TurnedAway => Duration::ZERO,
            End::Lost { sentence, retry } => {
                is_asked = retry.is_some();
                let wait = retry.unwrap_or_else(|| backoff.next(clock::roll()));
                tracing::info!("{sentence}; connecting again in {} s", wait.as_secs_f32().round());
                wait
            }
        };
        wait_or_answer(session, wait, !is_asked).await;
    }
}

/// Waits before the next try. An answered heartbeat shows that the orchestrator is back, so nothing more is waited for then,
/// unless the orchestrator itself asked for the wait.
async fn wait_or_answer(session: &Session, wait: Duration, ends_early: bool) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = session.answered.notified(), if ends_early => {}
    }
}

/// Until that ends; whoever takes nothing more is only known.
async fn listen(session: &Session, poll_until: Option<Instant>) -> End {
    if let Some(until) = poll_until.filter(|_| !session.is_closed()) {
        return poll(session, until).await;
    }
    let stream =
        async { if session.is_closed() { std::future::pending().await } else { stream::listen(session).await } };
    tokio::select! {
        ended = stream => ended,
        () = session.until_unknown() => {
            End::Lost { sentence: "the orchestrator does not know this connection".to_owned(), retry: None }
        }
    }
}

/// Long polls until a moment or a failure.
async fn poll(session: &Session, until: Instant) -> End {
    while Instant::now() < until {
        let began = Instant::now();
        match session.context.api.next().await {
            Ok(answer) => {
                session.contact();
                session.tell(Input::Desired(Box::new(answer.desired))).await;
            }
            Err(ApiError::Refused(sentence)) => return End::Refused(sentence),
            Err(error) => return End::Lost { sentence: format!("the poll failed: {error}"), retry: None },
        }
        tokio::time::sleep_until(began + SHORTEST_POLL).await;
    }
    End::PollingOver
}
