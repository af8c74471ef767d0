//! Responses with a file, or with the part of it that the request asks for.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::byte_range::RequestedRange;
use crate::http::operation::doc::HeaderDoc;
use crate::http::problem::ApiError;

/// Requests a part of a file.
pub const RANGE_HEADER: HeaderDoc = HeaderDoc {
    name: "Range",
    description: "`bytes=A-B`, `bytes=A-` or `bytes=-N`: requests only these bytes. Several ranges are ignored.",
};
/// Requests a part only of this version.
pub const IF_RANGE_HEADER: HeaderDoc = HeaderDoc {
    name: "If-Range",
    description: "The `ETag` of a known part: if the file is another one now, the response is the whole file.",
};
/// Which bytes a part contains.
pub const CONTENT_RANGE_HEADER: HeaderDoc =
    HeaderDoc { name: "Content-Range", description: "`bytes A-B/SIZE`: which bytes these are." };

/// The part of a file that a response contains.
#[derive(Debug, Clone)]
pub struct FilePart {
    pub range: Range<u64>,
    size: u64,
    status: StatusCode,
}

impl FilePart {
    /// Returns what a request asks for.
    ///
    /// # Errors
    /// Returns a problem if the file has none of the requested bytes.
    pub fn requested(headers: &HeaderMap, etag: &str, size: u64) -> Result<Self, ApiError> {
        match RequestedRange::from_headers(headers, etag, size) {
            RequestedRange::All => Ok(Self { range: 0..size, size, status: StatusCode::OK }),
            RequestedRange::Bytes(range) => Ok(Self { range, size, status: StatusCode::PARTIAL_CONTENT }),
            RequestedRange::Unsatisfiable => Err(ApiError::range_not_satisfiable(size)),
        }
    }

    /// Returns the response with these bytes.
    pub fn response(&self, bytes: Body) -> Response {
        let Range { start, end } = self.range;
        let headers =
            [(header::CONTENT_LENGTH, (end - start).to_string()), (header::ACCEPT_RANGES, "bytes".to_owned())];
        let content_range = (self.status == StatusCode::PARTIAL_CONTENT)
            .then(|| [(header::CONTENT_RANGE, format!("bytes {start}-{}/{}", end - 1, self.size))]);
        (self.status, headers, content_range, bytes).into_response()
    }
}
