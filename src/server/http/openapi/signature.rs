//! What a handler's types say of a route: what it reads, and what it answers. A description that is made from them
//! cannot say anything else than the compiler checked.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use schemars::JsonSchema;

use super::doc::{Answer, Content, Header, SchemaOf, schema_of};
use crate::http::address::{Path, Query};
use crate::http::json::{Created, Form, Json as JsonBody, OptionalJson};
use crate::http::problem::ApiError;
use crate::state::App;

/// What was found out about a handler.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// The JSON that it takes, and whether it must be there.
    pub body: Option<(SchemaOf, bool)>,
    /// The type whose fields are the query string's.
    pub query: Option<SchemaOf>,
    /// Headers that it looks at.
    pub headers: Vec<Header>,
    /// What it answers when all is well.
    pub answers: Vec<Answer>,
    /// What is refused before the handler is reached.
    pub problems: Vec<&'static str>,
}

/// A handler with arguments `T`, as its signature describes it.
pub trait Described<T> {
    /// The signature.
    fn signature() -> Signature;
}

/// Something that a handler takes from the request.
pub trait Takes {
    /// Notes what it reads.
    fn note(_: &mut Signature) {}
}

/// Something that a handler answers.
pub trait Answers {
    /// Notes what it is.
    fn note(signature: &mut Signature);
}

impl Takes for State<App> {}
impl Takes for HeaderMap {}
impl Takes for Request {}
impl Takes for Body {}
impl<T> Takes for Extension<T> {}
impl<T> Takes for Path<T> {}
impl<T> Takes for Form<T> {
    fn note(signature: &mut Signature) {
        signature.problems.extend(["broken_body", "body_too_slow", "body_too_large"]);
    }
}

impl<T: Takes> Takes for Option<T> {
    fn note(signature: &mut Signature) {
        T::note(signature);
    }
}

impl<T: Takes> Takes for Result<T, ApiError> {
    fn note(signature: &mut Signature) {
        T::note(signature);
    }
}

impl<T: JsonSchema> Takes for Query<T> {
    fn note(signature: &mut Signature) {
        signature.query = Some(schema_of::<T>);
        signature.problems.push("invalid_query");
    }
}

impl<T: JsonSchema> Takes for JsonBody<T> {
    fn note(signature: &mut Signature) {
        takes_json(signature, schema_of::<T>, true);
    }
}

impl<T: JsonSchema> Takes for OptionalJson<T> {
    fn note(signature: &mut Signature) {
        takes_json(signature, schema_of::<T>, false);
    }
}

fn takes_json(signature: &mut Signature, schema: SchemaOf, required: bool) {
    signature.body = Some((schema, required));
    signature.problems.extend(["invalid_json", "broken_body", "body_too_slow", "body_too_large"]);
}

impl<T: JsonSchema> Answers for Json<T> {
    fn note(signature: &mut Signature) {
        signature.answers.push(Answer::with(200, "Done.", Content::Json(schema_of::<T>)));
    }
}

impl<T: JsonSchema> Answers for Created<T> {
    fn note(signature: &mut Signature) {
        signature.answers.push(Answer::with(201, "Made.", Content::Json(schema_of::<T>)));
    }
}

/// Whatever it may be: the route's [`super::doc::Doc`] says it.
impl Answers for Response {
    fn note(_: &mut Signature) {}
}

impl<T: Answers> Answers for Result<T, ApiError> {
    fn note(signature: &mut Signature) {
        T::note(signature);
    }
}

macro_rules! described {
    ($(($($argument:ident),*))+) => {
        $(impl<F, Answer, M, $($argument),*> Described<(M, $($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Answer,
            Answer: Future,
            Answer::Output: Answers,
            $($argument: Takes),*
        {
            fn signature() -> Signature {
                let mut signature = Signature::default();
                $($argument::note(&mut signature);)*
                Answer::Output::note(&mut signature);
                signature
            }
        })+
    };
}

described! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G) (A, B, C, D, E, G, H) }
