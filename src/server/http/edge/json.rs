//! JSON bodies. Their `Content-Type` is ignored: some of the documented examples set none.

use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Form as RawForm, FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::limits;
use super::min_transfer_rate::is_body_too_slow;
use crate::http::operation::doc::{ContentDoc, ResponseDoc, SchemaOf, schema_of};
use crate::http::operation::signature::{DescribeInput, DescribeOutput, Signature};
use crate::http::problem::ApiError;

/// A required body.
pub struct Json<T>(pub T);

/// The response of a create: 201.
pub struct CreatedJson<T>(pub T);

impl<T: Serialize> IntoResponse for CreatedJson<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, axum::Json(self.0)).into_response()
    }
}

/// An optional body.
pub struct OptionalJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse_json(&read_body_in_time(request, state).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = read_body_in_time(request, state).await?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { parse_json(&bytes).map(Self) }
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
                ApiError::body_interrupted(&rejection.body_text())
            }
        })
    }
}

/// The total time for a body of ordinary size.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the whole body within the timeout. Bodies that are announced as large only have to keep the minimum rate.
async fn read_body_in_time<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    if request.body().size_hint().exact().is_some_and(|size| size > limits::API as u64) {
        return read_body(request, state).await;
    }
    tokio::time::timeout(BODY_TIMEOUT, read_body(request, state))
        .await
        .unwrap_or_else(|_| Err(ApiError::body_too_slow()))
}

/// Reads the whole body. One that is too large has its own problem code.
pub async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, state).await.map_err(|rejection: BytesRejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            ApiError::body_too_large()
        } else if is_body_too_slow(&rejection) {
            ApiError::body_too_slow()
        } else {
            ApiError::body_interrupted(&rejection.body_text())
        }
    })
}

/// Parses a whole body.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Serde also accepts a list with the fields in their order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::list_for_object());
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid_json(&error_path::<T>(bytes), &error))
}

/// Returns the path of the error in an invalid body. Only invalid bodies are parsed twice: tracking the path costs
/// time.
fn error_path<T: DeserializeOwned>(bytes: &[u8]) -> String {
    let result = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(bytes));
    result.err().map_or_else(|| ".".to_owned(), |error| error.path().to_string())
}

impl<T> DescribeInput for Form<T> {
    fn describe(signature: &mut Signature) {
        signature.problems.extend(["incomplete_body", "body_too_slow", "body_too_large"]);
    }
}

impl<T: JsonSchema> DescribeInput for Json<T> {
    fn describe(signature: &mut Signature) {
        describe_json_body(signature, schema_of::<T>, true);
    }
}

impl<T: JsonSchema> DescribeInput for OptionalJson<T> {
    fn describe(signature: &mut Signature) {
        describe_json_body(signature, schema_of::<T>, false);
    }
}

fn describe_json_body(signature: &mut Signature, schema: SchemaOf, required: bool) {
    signature.body = Some((schema, required));
    signature.problems.extend(["invalid_json", "incomplete_body", "body_too_slow", "body_too_large"]);
}

impl<T: JsonSchema> DescribeOutput for CreatedJson<T> {
    fn describe(signature: &mut Signature) {
        signature.responses.push(ResponseDoc::new(201, "Created.", ContentDoc::Json(schema_of::<T>)));
    }
}
