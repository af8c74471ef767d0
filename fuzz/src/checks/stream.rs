//! A stream of events as an agent reads it: the first line has the cuts, the rest is the stream. The events are the
//! same for all cuts, and no event is longer than the limit.

use std::convert::Infallible;

use app::protocol::agents::dispatch::WorkerEvent;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use sse_stream::{Sse, SseStream};

use crate::worker::event_size::EventSizeLimit;

/// The longest event here, in bytes.
const LIMIT: usize = 64;

/// See the module.
pub fn check(data: &[u8]) {
    let (cuts, body) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let Some(body) = body.get(1..) else { return };
    let uncut = read_events(vec![Bytes::copy_from_slice(body)]);
    let mut cuts = super::cuts(cuts);
    let (mut pieces, mut rest) = (Vec::new(), body);
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = tail;
    }
    assert_eq!(format!("{uncut:?}"), format!("{:?}", read_events(pieces)), "cuts change nothing");
    for event in &uncut {
        let data = event.data.as_deref().unwrap_or_default();
        let _: Result<WorkerEvent, _> = serde_json::from_str(data);
    }
    assert_within_limit(body);
}

/// Reads events until the first error.
fn read_events(pieces: Vec<Bytes>) -> Vec<Sse> {
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let events = SseStream::from_bytes_stream(pieces).take_while(|event| std::future::ready(event.is_ok()));
    events
        .filter_map(|event| std::future::ready(event.ok()))
        .collect::<Vec<_>>()
        .now_or_never()
        .expect("a stream that is ready")
}

fn assert_within_limit(body: &[u8]) {
    let mut limit = EventSizeLimit::new(LIMIT);
    let accepted = body.iter().position(|byte| !limit.accept(&[*byte])).unwrap_or(body.len());
    for event in read_events(vec![Bytes::copy_from_slice(&body[..accepted])]) {
        assert!(event.data.unwrap_or_default().len() <= LIMIT);
    }
}
