//! The `OpenAPI` document, generated from the declared routes ([`super::routes`]).
//!
//! A route cannot be declared without an [`OperationDoc`]. Its parameters and responses come from its handler's types
//! ([`super::operation::signature`]), its access rules and their problems from its [`super::routes::RouteAccess`].

mod document;
mod operation;
mod schemas;
mod simplify;

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use serde_json::Value;
use std::collections::BTreeMap;

pub use self::document::OpenApiVersion;
use super::operation::doc::{ContentDoc, ETAG_HEADER, IF_NONE_MATCH_HEADER, OperationDoc, ResponseDoc};
use super::routes::{DeclaredRoute, RouteAccess, Routes};
use crate::http::state::AppState;
use crate::tokens::hex;

/// The documents of all declared routes, rendered on first use.
pub struct ApiDescription {
    newest: LazyLock<ServedDocument, BuildDocument>,
    older: LazyLock<ServedDocument, BuildDocument>,
    page: LazyLock<String, Box<dyn FnOnce() -> String + Send>>,
}

type BuildDocument = Box<dyn FnOnce() -> ServedDocument + Send>;

/// A document as it is served.
struct ServedDocument {
    body: Bytes,
    etag: HeaderValue,
}

impl ApiDescription {
    /// Creates the description of these routes. `render_page` writes a document as HTML.
    pub fn new(routes: Vec<DeclaredRoute>, render_page: fn(&Value) -> String) -> Self {
        let routes = Arc::new(routes);
        let page_routes = Arc::clone(&routes);
        let page = Box::new(move || render_page(&document::build_document(OpenApiVersion::V3_2, &page_routes)));
        let build = |version: OpenApiVersion| -> BuildDocument {
            let routes = Arc::clone(&routes);
            Box::new(move || ServedDocument::new(&document::build_document(version, &routes)))
        };
        Self {
            newest: LazyLock::new(build(OpenApiVersion::V3_2)),
            older: LazyLock::new(build(OpenApiVersion::V3_1)),
            page: LazyLock::new(page),
        }
    }

    /// Returns the HTML page without its head.
    pub fn page(&self) -> &str {
        &self.page
    }
}

impl ServedDocument {
    fn new(document: &Value) -> Self {
        let body = Bytes::from(document.to_string());
        let digest = <sha2::Sha256 as sha2::Digest>::digest(&body);
        let etag = HeaderValue::from_str(&format!("\"{}\"", hex(&digest))).expect("hexadecimal digits");
        Self { body, etag }
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let response_headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::ETAG, self.etag.clone()),
        ];
        if headers.get(header::IF_NONE_MATCH) == Some(&self.etag) {
            return (StatusCode::NOT_MODIFIED, response_headers).into_response();
        }
        (response_headers, self.body.clone()).into_response()
    }
}

/// Returns the routes that serve the documents. The documents are added later ([`with_description`]), because they
/// describe these routes, too.
pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Description").get("/openapi.json", RouteAccess::Anyone, NEWEST, newest).get(
        "/openapi-3.1.json",
        RouteAccess::Anyone,
        OLDER,
        older,
    )
}

/// Adds the documents to the routes.
pub fn with_description(routes: Routes, description: &Arc<ApiDescription>) -> Router<AppState> {
    routes.into_router().layer(Extension(Arc::clone(description)))
}

const DOCUMENT_RESPONSES: &[ResponseDoc] = &[
    ResponseDoc {
        headers: &[ETAG_HEADER],
        ..ResponseDoc::json::<BTreeMap<String, Value>>(200, "The OpenAPI document.")
    },
    ResponseDoc::new(304, "Not modified.", ContentDoc::Empty),
];

const NEWEST: OperationDoc = OperationDoc {
    headers: &[IF_NONE_MATCH_HEADER],
    responses: DOCUMENT_RESPONSES,
    ..OperationDoc::new("getDescription", "Returns this document as OpenAPI 3.2, with typed events.")
};

async fn newest(Extension(description): Extension<Arc<ApiDescription>>, headers: HeaderMap) -> Response {
    description.newest.respond(&headers)
}

const OLDER: OperationDoc = OperationDoc {
    headers: &[IF_NONE_MATCH_HEADER],
    responses: DOCUMENT_RESPONSES,
    ..OperationDoc::new("getDescription31", "Returns this document as OpenAPI 3.1, for tools without support for 3.2.")
};

async fn older(Extension(description): Extension<Arc<ApiDescription>>, headers: HeaderMap) -> Response {
    description.older.respond(&headers)
}
