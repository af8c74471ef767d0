//! Aborts request bodies that arrive too slowly, as a byte now and then would hold a request open.
//!
//! Each KiB extends the deadline by a second, up to a minute ahead. Time that the server needs, for disk or database,
//! does not count.

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

/// The minimum rate of a body.
#[derive(Debug, Clone, Copy)]
struct TransferRate {
    /// The time before the first byte must arrive.
    initial_credit: Duration,
    /// The time that each KiB adds.
    per_kibibyte: Duration,
    /// The maximum time that can accumulate.
    max_credit: Duration,
}

const MIN_TRANSFER_RATE: TransferRate = TransferRate {
    initial_credit: Duration::from_secs(30),
    per_kibibyte: Duration::from_secs(1),
    max_credit: Duration::from_mins(1),
};

/// The body arrived too slowly.
#[derive(Debug)]
struct BodyTooSlow;

impl std::fmt::Display for BodyTooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it arrived too slowly")
    }
}

impl std::error::Error for BodyTooSlow {}

/// Returns whether an error was caused by a body that was too slow.
pub fn is_body_too_slow(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<BodyTooSlow>() || error.source().is_some_and(is_body_too_slow)
}

/// Enforces the minimum rate on the request's body.
pub async fn enforce_transfer_rate(request: Request, next: Next) -> Response {
    let request = request.map(|body| {
        if body.is_end_stream() { body } else { Body::new(RateEnforcedBody::new(body, MIN_TRANSFER_RATE)) }
    });
    next.run(request).await
}

struct RateEnforcedBody {
    body: Body,
    rate: TransferRate,
    deadline: Instant,
    /// Since when the handler has not read from the body.
    idle_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl RateEnforcedBody {
    fn new(body: Body, rate: TransferRate) -> Self {
        let now = Instant::now();
        Self { body, rate, deadline: now + rate.initial_credit, idle_since: Some(now), timer: None }
    }

    fn add_credit(&mut self, bytes: usize, now: Instant) {
        let kibibytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let time = self.rate.per_kibibyte.saturating_mul(kibibytes) / 1_024;
        let max_deadline = now + self.rate.max_credit;
        self.deadline = self.deadline.checked_add(time).map_or(max_deadline, |until| until.min(max_deadline));
    }
}

impl hyper::body::Body for RateEnforcedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let now = Instant::now();
        if let Some(idle_since) = this.idle_since.take() {
            this.deadline += now - idle_since;
            this.timer = None;
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
            this.add_credit(bytes, now);
            this.idle_since = Some(now);
            return Poll::Ready(frame);
        }
        let until = this.deadline;
        ready!(this.timer.get_or_insert_with(|| Box::pin(sleep_until(until))).as_mut().poll(context));
        Poll::Ready(Some(Err(axum::Error::new(BodyTooSlow))))
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

    const SHORT_TIME: Duration = Duration::from_millis(50);
    const LONG_TIME: Duration = Duration::from_hours(1);

    fn rate_enforced(chunks: impl Stream<Item = Bytes> + Send + 'static, rate: TransferRate) -> RateEnforcedBody {
        RateEnforcedBody::new(Body::from_stream(chunks.map(Ok::<_, axum::Error>)), rate)
    }

    /// Yields single bytes without end.
    fn single_bytes() -> impl Stream<Item = Bytes> {
        stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Bytes::from_static(b"x"), ()))
        })
    }

    #[tokio::test]
    async fn slow_body_is_aborted() {
        let rate = TransferRate { initial_credit: SHORT_TIME, per_kibibyte: SHORT_TIME, max_credit: LONG_TIME };
        let error = rate_enforced(single_bytes(), rate).collect().await.expect_err("it has no end");
        assert!(error.into_inner().is::<BodyTooSlow>());
        let error = rate_enforced(stream::pending(), rate).collect().await.expect_err("no data arrives");
        assert!(error.into_inner().is::<BodyTooSlow>());
    }

    #[tokio::test]
    async fn time_credit_is_limited() {
        let rate = TransferRate { initial_credit: SHORT_TIME, per_kibibyte: LONG_TIME, max_credit: SHORT_TIME };
        let chunks = stream::iter([Bytes::from(vec![0; 1 << 20])]).chain(stream::pending());
        let error = rate_enforced(chunks, rate).collect().await.expect_err("no more data arrives");
        assert!(error.into_inner().is::<BodyTooSlow>());
    }

    #[tokio::test]
    async fn body_above_the_minimum_rate_is_accepted() {
        let rate = TransferRate { initial_credit: LONG_TIME, per_kibibyte: LONG_TIME, max_credit: LONG_TIME };
        let body = rate_enforced(single_bytes().take(100), rate).collect().await.expect("in time");
        assert_eq!(body.to_bytes().len(), 100);
    }

    #[tokio::test]
    async fn processing_time_does_not_count() {
        let (send, receive) = tokio::sync::mpsc::unbounded_channel();
        let chunks = stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) });
        let mut body = rate_enforced(
            chunks,
            TransferRate { initial_credit: SHORT_TIME, per_kibibyte: LONG_TIME, max_credit: SHORT_TIME },
        );
        send.send(Bytes::from_static(b"one")).expect("open");
        body.frame().await.expect("a chunk").expect("in time");
        // The handler needs more time for this chunk than a sender may.
        tokio::time::sleep(2 * SHORT_TIME).await;
        let next = tokio::spawn(async move { body.frame().await.map(|chunk| chunk.is_ok()) });
        tokio::task::yield_now().await;
        send.send(Bytes::from_static(b"two")).expect("open");
        assert_eq!(next.await.expect("no panic"), Some(true));
    }
}
