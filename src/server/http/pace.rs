//! A body has to get on: whoever sends a byte now and then holds a request open for nothing.
//!
//! Each kibibyte buys a second, up to a minute ahead. What takes time here, a disk or a database, is not the sender's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// How fast a body has to come.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// The time that a body has before anything of it came.
    first: Duration,
    /// What a kibibyte buys.
    kibibyte: Duration,
    /// As far ahead as time can be bought.
    most: Duration,
}

const PACE: Pace =
    Pace { first: Duration::from_secs(30), kibibyte: Duration::from_secs(1), most: Duration::from_mins(1) };

/// The body did not get on.
#[derive(Debug)]
struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it came too slowly")
    }
}

impl std::error::Error for TooSlow {}

/// Whether an error comes of that.
pub fn was_too_slow(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<TooSlow>() || error.source().is_some_and(was_too_slow)
}

/// Watches the request's body.
pub async fn paced(request: Request, next: Next) -> Response {
    let request = request.map(|body| if body.is_end_stream() { body } else { Body::new(Paced::new(body, PACE)) });
    next.run(request).await
}

struct Paced {
    body: Body,
    pace: Pace,
    until: Instant,
    /// Since when nobody has asked for more.
    left_at: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(body: Body, pace: Pace) -> Self {
        let now = Instant::now();
        Self { body, pace, until: now + pace.first, left_at: Some(now), alarm: None }
    }

    fn bought(&mut self, bytes: usize, now: Instant) {
        let kibibytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let time = self.pace.kibibyte.saturating_mul(kibibytes) / 1_024;
        let most = now + self.pace.most;
        self.until = self.until.checked_add(time).map_or(most, |until| until.min(most));
    }
}

impl hyper::body::Body for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let now = Instant::now();
        if let Some(left_at) = this.left_at.take() {
            this.until += now - left_at;
            this.alarm = None;
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
            this.bought(bytes, now);
            this.left_at = Some(now);
            return Poll::Ready(frame);
        }
        let until = this.until;
        ready!(this.alarm.get_or_insert_with(|| Box::pin(sleep_until(until))).as_mut().poll(context));
        Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{Stream, StreamExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);
    const AGE: Duration = Duration::from_hours(1);

    fn of(pieces: impl Stream<Item = Bytes> + Send + 'static, pace: Pace) -> Paced {
        Paced::new(Body::from_stream(pieces.map(Ok::<_, axum::Error>)), pace)
    }

    /// Byte after byte, without end.
    fn dribble() -> impl Stream<Item = Bytes> {
        stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Bytes::from_static(b"x"), ()))
        })
    }

    #[tokio::test]
    async fn who_dribbles_is_cut_off() {
        let pace = Pace { first: MOMENT, kibibyte: MOMENT, most: AGE };
        let cut = of(dribble(), pace).collect().await.expect_err("it has no end");
        assert!(cut.into_inner().is::<TooSlow>());
        let cut = of(stream::pending(), pace).collect().await.expect_err("nothing comes");
        assert!(cut.into_inner().is::<TooSlow>());
    }

    #[tokio::test]
    async fn time_is_bought_a_while_ahead_only() {
        let pace = Pace { first: MOMENT, kibibyte: AGE, most: MOMENT };
        let much_and_then_nothing = stream::iter([Bytes::from(vec![0; 1 << 20])]).chain(stream::pending());
        let cut = of(much_and_then_nothing, pace).collect().await.expect_err("nothing more comes");
        assert!(cut.into_inner().is::<TooSlow>());
    }

    #[tokio::test]
    async fn who_gets_on_arrives() {
        let pace = Pace { first: AGE, kibibyte: AGE, most: AGE };
        let whole = of(dribble().take(100), pace).collect().await.expect("in time");
        assert_eq!(whole.to_bytes().len(), 100);
    }

    #[tokio::test]
    async fn what_takes_time_here_is_not_the_senders() {
        let (send, receive) = tokio::sync::mpsc::unbounded_channel();
        let pieces = stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) });
        let mut body = of(pieces, Pace { first: MOMENT, kibibyte: AGE, most: MOMENT });
        send.send(Bytes::from_static(b"one")).expect("open");
        body.frame().await.expect("a piece").expect("in time");
        // The writer of this piece takes longer than a sender may.
        tokio::time::sleep(2 * MOMENT).await;
        let next = tokio::spawn(async move { body.frame().await.map(|piece| piece.is_ok()) });
        tokio::task::yield_now().await;
        send.send(Bytes::from_static(b"two")).expect("open");
        assert_eq!(next.await.expect("no panic"), Some(true));
    }
}
