//! A stream of events as an agent hears it: cut by the first line, the rest is the stream. However the network cuts it, the
//! same is heard; and no event is heard that is longer than the measure allows.

use std::convert::Infallible;

use app::protocol::dispatch::WorkerEvent;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use sse_stream::{Sse, SseStream};

use crate::event_size::EventSize;

/// The longest event here, in bytes.
const LIMIT: usize = 64;

/// See the module.
pub fn check(data: &[u8]) {
    let (cuts, said) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let Some(said) = said.get(1..) else { return };
    let whole = heard(vec![Bytes::copy_from_slice(said)]);
    let mut cuts = super::cuts(cuts);
    let (mut pieces, mut rest) = (Vec::new(), said);
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = tail;
    }
    assert_eq!(format!("{whole:?}"), format!("{:?}", heard(pieces)), "cuts change nothing");
    for event in &whole {
        let data = event.data.as_deref().unwrap_or_default();
        let _: Result<WorkerEvent, _> = serde_json::from_str(data);
    }
    measured(said);
}

/// Until the stream breaks, if it does.
fn heard(pieces: Vec<Bytes>) -> Vec<Sse> {
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let events = SseStream::from_bytes_stream(pieces).take_while(|event| std::future::ready(event.is_ok()));
    events
        .filter_map(|event| std::future::ready(event.ok()))
        .collect::<Vec<_>>()
        .now_or_never()
        .expect("it is all there")
}

fn measured(said: &[u8]) {
    let mut size = EventSize::up_to(LIMIT);
    let accepted = said.iter().position(|byte| !size.add(&[*byte])).unwrap_or(said.len());
    for event in heard(vec![Bytes::copy_from_slice(&said[..accepted])]) {
        assert!(event.data.unwrap_or_default().len() <= LIMIT);
    }
}
