//! Responses of an orchestrator.

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

pub fn with_date(mut response: Response<Body>, date: Option<&'static str>) -> Response<Body> {
    let date = date.map(hyper::header::HeaderValue::from_static);
    response.headers_mut().extend(date.map(|date| (hyper::header::DATE, date)));
    response
}

pub fn merge(object: &mut Value, extra: Value) {
    if let (Some(object), Value::Object(extra)) = (object.as_object_mut(), extra) {
        object.extend(extra);
    }
}

pub fn json_response(status: u16, content_type: &str, body: &Value) -> Response<Body> {
    bytes_response(status, content_type, Bytes::from(body.to_string()))
}

pub fn bytes_response(status: u16, content_type: &str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap_or_default();
    if let Ok(content_type) = content_type.parse() {
        response.headers_mut().insert("content-type", content_type);
    }
    response
}

/// An endless body of white space: the beginning of any JSON, and of an event.
pub fn endless_response(status: u16, is_stream: bool, sent: Arc<AtomicU64>) -> Response<Body> {
    let (content_type, prefix) = if is_stream { ("text/event-stream", "data: ") } else { ("application/json", "") };
    let padding = std::iter::repeat_n(Bytes::from(vec![b' '; 64 * 1024]), usize::MAX);
    let frame = move |bytes: Bytes| {
        sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok::<_, Infallible>(Frame::data(bytes))
    };
    let body = stream::iter(std::iter::once(Bytes::from(prefix)).chain(padding).map(frame));
    let mut response = Response::new(StreamBody::new(body).boxed_unsync());
    *response.status_mut() = status.try_into().unwrap_or_default();
    response.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
    response
}

pub fn problem_response(status: u16, code: &str, extra: Value) -> Response<Body> {
    let mut body = json!({"type": "about:blank", "status": status, "title": "", "code": code, "detail": code});
    merge(&mut body, extra);
    json_response(status, "application/problem+json", &body)
}

pub fn ok_response(body: &Value) -> Response<Body> {
    json_response(200, "application/json", body)
}
