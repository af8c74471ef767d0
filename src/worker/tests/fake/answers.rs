//! Answers as an orchestrator gives them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Response;
use hyper::body::{Bytes, Frame};
use hyper::header::HeaderValue;
use serde_json::{Value, json};

use super::Body;

pub fn dated(mut answer: Response<Body>, date: Option<&'static str>) -> Response<Body> {
    let date = date.map(hyper::header::HeaderValue::from_static);
    answer.headers_mut().extend(date.map(|date| (hyper::header::DATE, date)));
    answer
}

pub fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

pub fn reply(status: u16, kind: &str, body: &Value) -> Response<Body> {
    full(status, kind, Bytes::from(body.to_string()))
}

pub fn full(status: u16, kind: &str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap_or_default();
    if let Ok(kind) = kind.parse() {
        response.headers_mut().insert("content-type", kind);
    }
    response
}

/// A body of white space that does not end: the beginning of any JSON, and of an event.
pub fn endless(status: u16, is_stream: bool, sent: Arc<AtomicU64>) -> Response<Body> {
    let (kind, first) = if is_stream { ("text/event-stream", "data: ") } else { ("application/json", "") };
    let more = std::iter::repeat_n(Bytes::from(vec![b' '; 64 * 1024]), usize::MAX);
    let frame = move |bytes: Bytes| {
        sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok::<_, Infallible>(Frame::data(bytes))
    };
    let body = stream::iter(std::iter::once(Bytes::from(first)).chain(more).map(frame));
    let mut response = Response::new(StreamBody::new(body).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap_or_default();
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response
}

pub fn problem(status: u16, code: &str, more: Value) -> Response<Body> {
    let mut body = json!({"type": "about:blank", "status": status, "title": "", "code": code, "detail": code});
    extend(&mut body, more);
    reply(status, "application/problem+json", &body)
}

pub fn ok(body: &Value) -> Response<Body> {
    reply(200, "application/json", body)
}
