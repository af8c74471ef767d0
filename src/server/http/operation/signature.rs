//! Derives the parameters and responses of a route from its handler's types, so that they cannot differ from the code.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use schemars::JsonSchema;

use super::doc::{ContentDoc, HeaderDoc, ResponseDoc, SchemaOf, schema_of};
use crate::http::problem::ApiError;
use crate::http::state::AppState;

/// Parameters and responses of a handler.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// The JSON body, and whether it is required.
    pub body: Option<(SchemaOf, bool)>,
    /// The type of the query string.
    pub query: Option<SchemaOf>,
    /// Request headers that are read.
    pub headers: Vec<HeaderDoc>,
    /// Responses on success.
    pub responses: Vec<ResponseDoc>,
    /// Problems that are detected before the handler runs.
    pub problems: Vec<&'static str>,
}

/// A handler with arguments `T`.
pub trait HandlerSignature<T> {
    /// Returns its signature.
    fn signature() -> Signature;
}

/// An argument of a handler.
pub trait DescribeInput {
    /// Adds what it reads.
    fn describe(_: &mut Signature) {}
}

/// A return type of a handler.
pub trait DescribeOutput {
    /// Adds what it returns.
    fn describe(signature: &mut Signature);
}

impl DescribeInput for State<AppState> {}
impl DescribeInput for HeaderMap {}
impl DescribeInput for Request {}
impl DescribeInput for Body {}
impl<T> DescribeInput for Extension<T> {}

impl<T: DescribeInput> DescribeInput for Option<T> {
    fn describe(signature: &mut Signature) {
        T::describe(signature);
    }
}

impl<T: DescribeInput> DescribeInput for Result<T, ApiError> {
    fn describe(signature: &mut Signature) {
        T::describe(signature);
    }
}

impl<T: JsonSchema> DescribeOutput for Json<T> {
    fn describe(signature: &mut Signature) {
        signature.responses.push(ResponseDoc::new(200, "Done.", ContentDoc::Json(schema_of::<T>)));
    }
}

/// Any response: the route's [`super::doc::OperationDoc`] describes it.
impl DescribeOutput for Response {
    fn describe(_: &mut Signature) {}
}

impl<T: DescribeOutput> DescribeOutput for Result<T, ApiError> {
    fn describe(signature: &mut Signature) {
        T::describe(signature);
    }
}

macro_rules! described {
    ($(($($argument:ident),*))+) => {
        $(impl<F, ResponseFuture, M, $($argument),*> HandlerSignature<(M, $($argument,)*)> for F
        where
            F: Fn($($argument),*) -> ResponseFuture,
            ResponseFuture: Future,
            ResponseFuture::Output: DescribeOutput,
            $($argument: DescribeInput),*
        {
            fn signature() -> Signature {
                let mut signature = Signature::default();
                $($argument::describe(&mut signature);)*
                ResponseFuture::Output::describe(&mut signature);
                signature
            }
        })+
    };
}

described! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G) (A, B, C, D, E, G, H) }
