//! Extractors for path parameters and query strings, which reject invalid ones with a problem document.

use app::domain::ids::{JobId, WorkerId};
use axum::extract::{FromRequestParts, Path as RawPath, Query as RawQuery};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::http::operation::doc::schema_of;
use crate::http::operation::signature::{DescribeInput, Signature};
use crate::http::problem::ApiError;
use crate::service::error::IdKind;

pub struct Path<T>(pub T);

pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let RawPath(parameters) =
            RawPath::from_request_parts(parts, state).await.map_err(|_| ApiError::invalid_path_parameter())?;
        Ok(Self(parameters))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = RawQuery::from_request_parts(parts, state).await;
        query.map(|RawQuery(query)| Self(query)).map_err(|rejection| ApiError::invalid_query(&rejection.body_text()))
    }
}

impl<T> DescribeInput for Path<T> {}

impl<T: JsonSchema> DescribeInput for Query<T> {
    fn describe(signature: &mut Signature) {
        signature.query = Some(schema_of::<T>);
        signature.problems.push("invalid_query");
    }
}

/// Parses a job's id from a path.
pub fn job_id(text: &str) -> Result<JobId, ApiError> {
    JobId::parse(text).map_err(|_| ApiError::invalid_id(IdKind::Job))
}

/// Parses a worker's id from a path.
pub fn worker_id(text: &str) -> Result<WorkerId, ApiError> {
    WorkerId::parse(text).map_err(|_| ApiError::invalid_id(IdKind::Worker))
}
