//! Answers with a name for exactly the state that they show (`ETag`), and requests that depend on it.
//!
//! `If-None-Match` spares sending what the caller has. `If-Match` keeps an edit from undoing somebody else's: the name
//! of a thing that can be edited begins with its revision, which only edits change, and that is what is compared, so
//! that a heartbeat in between is no conflict.

use std::convert::Infallible;

use app::domain::time::Timestamp;
use app::protocol::access::UsersPage;
use app::protocol::audit::AuditPage;
use app::protocol::gpus::GpusPage;
use app::protocol::queue::JobsPage;
use app::protocol::worker_history::{WorkerAttempts, WorkerEvents};
use app::protocol::workers::WorkersPage;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::openapi::doc::{Answer, Content, ETAG, Header, IF_MATCH, IF_NEW, IF_NONE_MATCH, LINK, schema_of};
use super::openapi::signature::{Answers, Signature, Takes};
use crate::text::percent_escaped;
use crate::tokens::hex;

/// So long a list may be to be given a name: beyond, finding it costs more than it spares.
const NAMED: usize = 100;

/// What the caller has already, and the address it asks.
pub struct IfNoneMatch {
    known: Vec<String>,
    uri: Uri,
}

/// The revision that an edit is meant for; none if the caller did not say, or said that any will do.
pub struct IfMatch(pub Option<Vec<String>>);

/// Whether the caller means to make what is not there yet.
pub struct IfNew(pub bool);

/// A view with the name of its state; 304 without it if the caller has it.
pub struct Tagged<T> {
    known: bool,
    tag: String,
    view: T,
}

/// A page of a list, with a link to the next one.
pub struct Listed<T> {
    known: bool,
    tag: Option<String>,
    next: Option<String>,
    page: T,
}

/// A page that can be given a name.
pub trait Page: Serialize {
    /// How many there are on it.
    fn len(&self) -> usize;
    /// Where the next one starts.
    fn next_cursor(&self) -> Option<&str>;
    /// The moment of the answer, which is no part of the state.
    fn server_time(&mut self) -> Option<&mut Timestamp> {
        None
    }
}

/// A page by the name of its list, and by that of its moment if it has one.
macro_rules! page {
    ($page:ty, $list:ident $(, $time:ident)?) => {
        impl Page for $page {
            fn len(&self) -> usize {
                self.$list.len()
            }

            fn next_cursor(&self) -> Option<&str> {
                self.next_cursor.as_deref()
            }

            $(fn server_time(&mut self) -> Option<&mut Timestamp> {
                Some(&mut self.$time)
            })?
        }
    };
}

page!(JobsPage, jobs, server_time);
page!(AuditPage, entries, server_time);
page!(WorkersPage, workers, server_time);
page!(GpusPage, workers, server_time);
page!(UsersPage, users);
page!(WorkerAttempts, attempts, server_time);
page!(WorkerEvents, events, server_time);

impl IfNoneMatch {
    /// The view of a thing, with its revision if it can be edited.
    pub fn tagged<T: Serialize>(&self, revision: Option<&str>, view: T) -> Tagged<T> {
        let state = digest(&view);
        let tag = revision.map_or_else(|| state.clone(), |revision| format!("{revision}.{state}"));
        Tagged { known: self.knows(&tag), tag, view }
    }

    /// A page of a list.
    pub fn listed<T: Page>(&self, mut page: T) -> Listed<T> {
        let tag = (page.len() <= NAMED).then(|| {
            let told = page.server_time().map(|time| std::mem::replace(time, Timestamp(0)));
            let tag = digest(&page);
            if let (Some(time), Some(told)) = (page.server_time(), told) {
                *time = told;
            }
            tag
        });
        let known = tag.as_ref().is_some_and(|tag| self.knows(tag));
        let next = page.next_cursor().map(|cursor| link(&self.uri, cursor));
        Listed { known, tag, next, page }
    }

    fn knows(&self, tag: &str) -> bool {
        self.known.iter().any(|known| known == "*" || known == tag)
    }
}

/// The first half of the SHA-256 of the JSON, in hex.
fn digest(view: &impl Serialize) -> String {
    let json = serde_json::to_vec(view).expect("plain fields");
    hex(&Sha256::digest(json)[..16])
}

/// The same address from another cursor.
fn link(uri: &Uri, cursor: &str) -> String {
    let kept =
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let cursor = format!("cursor={}", percent_escaped(cursor));
    let query = kept.chain([cursor.as_str()]).collect::<Vec<_>>().join("&");
    format!("</api{}?{query}>; rel=\"next\"", uri.path().trim_start_matches("/api"))
}

/// The names in a header, without their quotes; weak ones match nothing that is strong.
fn names(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let each =
        lists.flat_map(|list| list.split(',')).map(str::trim).filter(|tag| !tag.is_empty() && !tag.starts_with("W/"));
    each.map(|tag| tag.trim_matches('"').to_owned()).collect()
}

impl<S: Send + Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { known: names(&parts.headers, header::IF_NONE_MATCH), uri: parts.uri.clone() })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let asked = parts.headers.contains_key(header::IF_MATCH);
        let names = names(&parts.headers, header::IF_MATCH);
        let revision = |name: String| name.split('.').next().unwrap_or_default().to_owned();
        let any = names.iter().any(|name| name == "*");
        Ok(Self((asked && !any).then(|| names.into_iter().map(revision).collect())))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfNew {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(names(&parts.headers, header::IF_NONE_MATCH).iter().any(|name| name == "*")))
    }
}

impl Takes for IfNoneMatch {
    fn note(signature: &mut Signature) {
        signature.headers.push(IF_NONE_MATCH);
    }
}

impl Takes for IfMatch {
    fn note(signature: &mut Signature) {
        signature.headers.push(IF_MATCH);
        signature.problems.push("precondition_failed");
    }
}

impl Takes for IfNew {
    fn note(signature: &mut Signature) {
        signature.headers.push(IF_NEW);
        signature.problems.push("precondition_failed");
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        named(self.known, Some(&self.tag), None, &self.view)
    }
}

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        named(self.known, self.tag.as_deref(), self.next.as_deref(), &self.page)
    }
}

fn named(known: bool, tag: Option<&str>, next: Option<&str>, view: &impl Serialize) -> Response {
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { axum::Json(view).into_response() };
    let headers = response.headers_mut();
    let quoted = tag.and_then(|tag| HeaderValue::from_str(&format!("\"{tag}\"")).ok());
    quoted.map(|tag| headers.insert(header::ETAG, tag));
    next.and_then(|next| HeaderValue::from_str(next).ok()).map(|next| headers.insert(header::LINK, next));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

impl<T: JsonSchema> Answers for Tagged<T> {
    fn note(signature: &mut Signature) {
        described::<T>(signature, &[ETAG]);
    }
}

impl<T: JsonSchema> Answers for Listed<T> {
    fn note(signature: &mut Signature) {
        described::<T>(signature, &[ETAG, LINK]);
    }
}

fn described<T: JsonSchema>(signature: &mut Signature, headers: &'static [Header]) {
    signature.answers.extend([
        Answer { headers, ..Answer::with(200, "Done.", Content::Json(schema_of::<T>)) },
        Answer::with(304, "It is as the caller has it.", Content::Nothing),
    ]);
}
