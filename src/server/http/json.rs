//! JSON bodies, whatever their `Content-Type` says: some of the documented examples set none.

use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Form as RawForm, FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::Error;

use super::limits;
use super::pace::was_too_slow;
use super::problem::ApiError;

/// A body that must be there.
pub struct Json<T>(pub T);

/// The answer to what made something: 201.
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, axum::Json(self.0)).into_response()
    }
}

/// A body that may be left out.
pub struct OptionalJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&soon(request, state).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = soon(request, state).await?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { parse(&bytes).map(Self) }
    }
}

/// The fields of a form.
pub struct Form<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        RawForm::from_request(request, state).await.map(|RawForm(fields)| Self(fields)).map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                ApiError::body_too_large()
            } else {
                ApiError::broken_body(&rejection.body_text())
            }
        })
    }
}

/// How long a body of ordinary size may take in all.
const SOON: Duration = Duration::from_secs(30);

/// The whole body, before anybody loses patience. One that is announced as large has as long as it gets on.
async fn soon<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    if request.body().size_hint().exact().is_some_and(|size| size > limits::API as u64) {
        return body(request, state).await;
    }
    tokio::time::timeout(SOON, body(request, state)).await.unwrap_or_else(|_| Err(ApiError::body_too_slow()))
}

/// The whole body; too large is a problem of its own.
pub async fn body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, state).await.map_err(|rejection: BytesRejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            ApiError::body_too_large()
        } else if was_too_slow(&rejection) {
            ApiError::body_too_slow()
        } else {
            ApiError::broken_body(&rejection.body_text())
        }
    })
}

/// A whole body.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Serde would read the fields of a list in their order, too.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::invalid_json(".", &serde_json::Error::custom("a list where an object is expected")));
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid_json(&place::<T>(bytes), &error))
}

/// Where in a refused body the error is. Only refused bodies are read twice: keeping the path costs time.
fn place<T: DeserializeOwned>(bytes: &[u8]) -> String {
    let read = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(bytes));
    read.err().map_or_else(|| ".".to_owned(), |error| error.path().to_string())
}
