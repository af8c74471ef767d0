//! Conditional requests: `ETag` on responses, `If-None-Match` and `If-Match` on requests.
//!
//! `If-None-Match` saves sending what the caller already has. `If-Match` prevents lost updates: the tag of an editable
//! resource begins with its revision, which only edits change, and only the revision is compared. A heartbeat between
//! read and edit is no conflict.

use std::convert::Infallible;

use app::domain::time::Timestamp;
use app::protocol::access::UsersPage;
use app::protocol::audit::AuditPage;
use app::protocol::gpus::GpusPage;
use app::protocol::jobs::JobsPage;
use app::protocol::workers::WorkersPage;
use app::protocol::workers::history::{WorkerAttempts, WorkerEvents};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::http::operation::doc::{
    ContentDoc, ETAG_HEADER, HeaderDoc, IF_MATCH_HEADER, IF_NEW_HEADER, IF_NONE_MATCH_HEADER, LINK_HEADER, ResponseDoc,
    schema_of,
};
use crate::http::operation::signature::{DescribeInput, DescribeOutput, Signature};
use crate::text::percent_escaped;
use crate::tokens::hex;

/// Longer lists get no tag: computing it costs more than it saves.
const MAX_TAGGED_ITEMS: usize = 100;

/// The tags that the caller has, and the URI it requests.
pub struct IfNoneMatch {
    etags: Vec<String>,
    uri: Uri,
}

/// The revision that an edit applies to; `None` without the header, or with `*`.
pub struct IfMatch(pub Option<Vec<String>>);

/// Whether the caller only wants to create (`If-None-Match: *`).
pub struct IfNoneMatchAny(pub bool);

/// A view with its `ETag`; 304 without a body if the caller has it.
pub struct TaggedResponse<T> {
    not_modified: bool,
    etag: String,
    view: T,
}

/// A page of a list, with a `Link` to the next one.
pub struct ListResponse<T> {
    not_modified: bool,
    etag: Option<String>,
    next_link: Option<String>,
    page: T,
}

/// A list page that can get an `ETag`.
pub trait ListView: Serialize {
    /// Returns the number of items on the page.
    fn len(&self) -> usize;
    /// Returns the cursor of the next page.
    fn next_cursor(&self) -> Option<&str>;
    /// Returns the time of the response, which is excluded from the tag.
    fn server_time(&mut self) -> Option<&mut Timestamp> {
        None
    }
}

/// Implements `ListView` for a page, given the field of its items and, if it has one, that of the server's time.
macro_rules! page {
    ($page:ty, $list:ident $(, $time:ident)?) => {
        impl ListView for $page {
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
    /// Returns the view with a tag that contains the revision if the resource can be edited.
    pub fn tagged<T: Serialize>(&self, revision: Option<&str>, view: T) -> TaggedResponse<T> {
        let state = state_digest(&view);
        let tag = revision.map_or_else(|| state.clone(), |revision| format!("{revision}.{state}"));
        TaggedResponse { not_modified: self.matches(&tag), etag: tag, view }
    }

    /// Returns a page of a list with its tag.
    pub fn listed<T: ListView>(&self, mut page: T) -> ListResponse<T> {
        let tag = (page.len() <= MAX_TAGGED_ITEMS).then(|| {
            let server_time = page.server_time().map(|time| std::mem::replace(time, Timestamp(0)));
            let tag = state_digest(&page);
            if let (Some(time), Some(server_time)) = (page.server_time(), server_time) {
                *time = server_time;
            }
            tag
        });
        let not_modified = tag.as_ref().is_some_and(|tag| self.matches(tag));
        let next_link = page.next_cursor().map(|cursor| next_page_link(&self.uri, cursor));
        ListResponse { not_modified, etag: tag, next_link, page }
    }

    fn matches(&self, tag: &str) -> bool {
        self.etags.iter().any(|etag| etag == "*" || etag == tag)
    }
}

/// Returns the first half of the SHA-256 of the JSON, in hex.
fn state_digest(view: &impl Serialize) -> String {
    let json = serde_json::to_vec(view).expect("plain fields");
    hex(&Sha256::digest(json)[..16])
}

/// Returns the requested URI with another cursor.
fn next_page_link(uri: &Uri, cursor: &str) -> String {
    let other_parameters =
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let cursor = format!("cursor={}", percent_escaped(cursor));
    let query = other_parameters.chain([cursor.as_str()]).collect::<Vec<_>>().join("&");
    format!("</api{}?{query}>; rel=\"next\"", uri.path().trim_start_matches("/api"))
}

/// Returns the tags of a header without quotes. Weak tags never match strong ones.
fn parse_etags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let etags =
        lists.flat_map(|list| list.split(',')).map(str::trim).filter(|tag| !tag.is_empty() && !tag.starts_with("W/"));
    etags.map(|tag| tag.trim_matches('"').to_owned()).collect()
}

impl<S: Send + Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { etags: parse_etags(&parts.headers, header::IF_NONE_MATCH), uri: parts.uri.clone() })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let is_present = parts.headers.contains_key(header::IF_MATCH);
        let names = parse_etags(&parts.headers, header::IF_MATCH);
        let revision = |name: String| name.split('.').next().unwrap_or_default().to_owned();
        let matches_any = names.iter().any(|name| name == "*");
        Ok(Self((is_present && !matches_any).then(|| names.into_iter().map(revision).collect())))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfNoneMatchAny {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parse_etags(&parts.headers, header::IF_NONE_MATCH).iter().any(|name| name == "*")))
    }
}

impl DescribeInput for IfNoneMatch {
    fn describe(signature: &mut Signature) {
        signature.headers.push(IF_NONE_MATCH_HEADER);
    }
}

impl DescribeInput for IfMatch {
    fn describe(signature: &mut Signature) {
        signature.headers.push(IF_MATCH_HEADER);
        signature.problems.push("precondition_failed");
    }
}

impl DescribeInput for IfNoneMatchAny {
    fn describe(signature: &mut Signature) {
        signature.headers.push(IF_NEW_HEADER);
        signature.problems.push("precondition_failed");
    }
}

impl<T: Serialize> IntoResponse for TaggedResponse<T> {
    fn into_response(self) -> Response {
        etag_response(self.not_modified, Some(&self.etag), None, &self.view)
    }
}

impl<T: Serialize> IntoResponse for ListResponse<T> {
    fn into_response(self) -> Response {
        etag_response(self.not_modified, self.etag.as_deref(), self.next_link.as_deref(), &self.page)
    }
}

fn etag_response(not_modified: bool, tag: Option<&str>, next: Option<&str>, view: &impl Serialize) -> Response {
    let mut response =
        if not_modified { StatusCode::NOT_MODIFIED.into_response() } else { axum::Json(view).into_response() };
    let headers = response.headers_mut();
    let quoted = tag.and_then(|tag| HeaderValue::from_str(&format!("\"{tag}\"")).ok());
    quoted.map(|tag| headers.insert(header::ETAG, tag));
    next.and_then(|next| HeaderValue::from_str(next).ok()).map(|next| headers.insert(header::LINK, next));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

impl<T: JsonSchema> DescribeOutput for TaggedResponse<T> {
    fn describe(signature: &mut Signature) {
        describe_not_modified::<T>(signature, &[ETAG_HEADER]);
    }
}

impl<T: JsonSchema> DescribeOutput for ListResponse<T> {
    fn describe(signature: &mut Signature) {
        describe_not_modified::<T>(signature, &[ETAG_HEADER, LINK_HEADER]);
    }
}

fn describe_not_modified<T: JsonSchema>(signature: &mut Signature, headers: &'static [HeaderDoc]) {
    signature.responses.extend([
        ResponseDoc { headers, ..ResponseDoc::new(200, "Done.", ContentDoc::Json(schema_of::<T>)) },
        ResponseDoc::new(304, "Not modified.", ContentDoc::Empty),
    ]);
}
