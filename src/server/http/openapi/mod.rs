//! The description of the API: `OpenAPI`, made from the routes as they are declared ([`super::routes`]).
//!
//! A route cannot be declared without a [`doc::Doc`]; what it reads and answers comes from its handler's types
//! ([`signature`]), who may use it and what they are refused with from its [`super::routes::Access`].

pub mod doc;
mod document;
mod operation;
mod schemas;
pub mod signature;

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::Value;
use std::collections::BTreeMap;

use self::doc::{Answer, Doc, ETAG, IF_NONE_MATCH};
pub use self::document::Version;
use super::docs;
use super::routes::{Access, Declared, Routes};
use crate::state::App;
use crate::tokens::hex;

/// The description of everything that was declared, written when it is first asked for.
pub struct Description {
    newest: LazyLock<Served, Write>,
    older: LazyLock<Served, Write>,
    page: LazyLock<String, Box<dyn FnOnce() -> String + Send>>,
}

type Write = Box<dyn FnOnce() -> Served + Send>;

/// The description as a file.
struct Served {
    body: Bytes,
    etag: HeaderValue,
}

impl Description {
    /// Of these routes.
    pub fn of(routes: Vec<Declared>) -> Self {
        let routes = Arc::new(routes);
        let of_page = Arc::clone(&routes);
        let page = Box::new(move || docs::page(&document::document(Version::V3_2, &of_page)));
        let written = |version: Version| -> Write {
            let routes = Arc::clone(&routes);
            Box::new(move || Served::new(&document::document(version, &routes)))
        };
        Self {
            newest: LazyLock::new(written(Version::V3_2)),
            older: LazyLock::new(written(Version::V3_1)),
            page: LazyLock::new(page),
        }
    }

    /// For people: the page without its head.
    pub fn page(&self) -> &str {
        &self.page
    }
}

impl Served {
    fn new(document: &Value) -> Self {
        let body = Bytes::from(document.to_string());
        let digest = <sha2::Sha256 as sha2::Digest>::digest(&body);
        let etag = HeaderValue::from_str(&format!("\"{}\"", hex(&digest))).expect("hexadecimal digits");
        Self { body, etag }
    }

    fn answer(&self, headers: &HeaderMap) -> Response {
        let named = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::ETAG, self.etag.clone()),
        ];
        if headers.get(header::IF_NONE_MATCH) == Some(&self.etag) {
            return (StatusCode::NOT_MODIFIED, named).into_response();
        }
        (named, self.body.clone()).into_response()
    }
}

/// The routes of the description. It is given to them afterwards ([`with`]), because it has these in it, too.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Description").get("/openapi.json", Access::Anyone, NEWEST, newest).get(
        "/openapi-3.1.json",
        Access::Anyone,
        OLDER,
        older,
    )
}

/// The routes with what they serve.
pub fn with(routes: Routes, description: &Arc<Description>) -> Router<App> {
    routes.into_router().layer(Extension(Arc::clone(description)))
}

const DOCUMENT: &[Answer] = &[
    Answer { headers: &[ETAG], ..Answer::json::<BTreeMap<String, Value>>(200, "The description.") },
    Answer::with(304, "It is the one that the caller has.", doc::Content::Nothing),
];

const NEWEST: Doc = Doc {
    headers: &[IF_NONE_MATCH],
    answers: DOCUMENT,
    ..Doc::of("getDescription", "This description, as OpenAPI 3.2, with typed events.")
};

async fn newest(Extension(description): Extension<Arc<Description>>, headers: HeaderMap) -> Response {
    description.newest.answer(&headers)
}

const OLDER: Doc = Doc {
    headers: &[IF_NONE_MATCH],
    answers: DOCUMENT,
    ..Doc::of("getDescription31", "This description, as OpenAPI 3.1, for programs that do not know 3.2 yet.")
};

async fn older(Extension(description): Extension<Arc<Description>>, headers: HeaderMap) -> Response {
    description.older.answer(&headers)
}
