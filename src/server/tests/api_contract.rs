//! Compares every response in the tests with the `OpenAPI` document: its status, and the code of a problem.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{Method, header};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::http::problem::codes::ProblemCode;
use crate::http::state::AppState;

/// What an operation can return, by method and path.
struct RouteContract {
    method: Method,
    path: String,
    /// Statuses of successful responses.
    good: BTreeSet<u16>,
    /// Problems, by status.
    problems: BTreeMap<u16, BTreeSet<&'static str>>,
}

/// Checks a response against the document.
pub async fn check(app: &AppState, method: Method, path: &str, answer: Response) -> Response {
    static PROMISES: OnceLock<Vec<RouteContract>> = OnceLock::new();
    let promises = PROMISES.get_or_init(|| route_contracts(app));
    let method = if method == Method::HEAD { Method::GET } else { method };
    let found = promises.iter().filter(|promise| promise.method == method && matches_template(&promise.path, path));
    // If two templates match, the one with fewer parameters applies.
    let found = found.min_by_key(|promise| promise.path.matches('{').count());
    let is_problem = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json");
    let status = answer.status().as_u16();
    let context = format!("{method} {path} answered {status}");
    if !is_problem {
        assert!(found.is_none_or(|promise| promise.good.contains(&status)), "{context}, which is not described");
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let document: Value = serde_json::from_slice(&bytes).expect("a problem document");
    let code = document["code"].as_str().unwrap_or_default();
    let known = ProblemCode::find(code).is_some_and(|code| code.statuses.contains(&status));
    assert!(known, "{context} `{code}`, which is not in the table of codes");
    let is_described =
        |promise: &RouteContract| promise.problems.get(&status).is_some_and(|codes| codes.contains(code));
    assert!(found.is_none_or(is_described), "{context} `{code}`, which is not described");
    Response::from_parts(parts, Body::from(bytes))
}

fn route_contracts(app: &AppState) -> Vec<RouteContract> {
    let promise = |route: crate::http::routes::DeclaredRoute| {
        let mut problems: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
        for name in route.problems() {
            let code = ProblemCode::find(name).unwrap_or_else(|| panic!("{name} is not in the table of codes"));
            code.statuses.iter().for_each(|status| _ = problems.entry(*status).or_default().insert(code.name));
        }
        let good = route.signature.responses.iter().chain(route.doc.responses).map(|answer| answer.status).collect();
        RouteContract { method: route.method, path: route.path, good, problems }
    };
    crate::http::declared_routes(app).into_iter().map(promise).collect()
}

/// Returns whether a path matches a template.
fn matches_template(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (mut wanted, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(rest), Some(_)) if rest.starts_with("{*") => return true,
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}
