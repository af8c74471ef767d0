//! Extractors for path parameters and query strings, which reject invalid ones with a problem document.

use axum::extract::{FromRequestParts, Path as RawPath, Query as RawQuery};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::http::problem::ApiError;

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
