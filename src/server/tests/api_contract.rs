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
    success_statuses: BTreeSet<u16>,
    /// Problems, by status.
    problems: BTreeMap<u16, BTreeSet<&'static str>>,
}

/// Checks a response against the document.
pub async fn check(app: &AppState, method: Method, path: &str, response: Response) -> Response {
    static CONTRACTS: OnceLock<Vec<RouteContract>> = OnceLock::new();
    let contracts = CONTRACTS.get_or_init(|| route_contracts(app));
    let method = if method == Method::HEAD { Method::GET } else { method };
    let declared =
        contracts.iter().filter(|contract| contract.method == method && matches_template(&contract.path, path));
    // If two templates match, the one with fewer parameters applies.
    let declared = declared.min_by_key(|contract| contract.path.matches('{').count());
    let is_problem =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json");
    let status = response.status().as_u16();
    let context = format!("{method} {path} answered {status}");
    if !is_problem {
        assert!(
            declared.is_none_or(|contract| contract.success_statuses.contains(&status)),
            "{context}, which is not described"
        );
        return response;
    }
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a complete body").to_bytes();
    let document: Value = serde_json::from_slice(&bytes).expect("a problem document");
    let code = document["code"].as_str().unwrap_or_default();
    let is_listed = ProblemCode::find(code).is_some_and(|code| code.statuses.contains(&status));
    assert!(is_listed, "{context} `{code}`, which is not in the table of codes");
    let is_described =
        |contract: &RouteContract| contract.problems.get(&status).is_some_and(|codes| codes.contains(code));
    assert!(declared.is_none_or(is_described), "{context} `{code}`, which is not described");
    Response::from_parts(parts, Body::from(bytes))
}

fn route_contracts(app: &AppState) -> Vec<RouteContract> {
    let contract = |route: crate::http::routes::DeclaredRoute| {
        let mut problems: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
        for name in route.problems() {
            let code = ProblemCode::find(name).unwrap_or_else(|| panic!("{name} is not in the table of codes"));
            code.statuses.iter().for_each(|status| _ = problems.entry(*status).or_default().insert(code.name));
        }
        let success_statuses =
            route.signature.responses.iter().chain(route.doc.responses).map(|answer| answer.status).collect();
        RouteContract { method: route.method, path: route.path, success_statuses, problems }
    };
    crate::http::declared_routes(app).into_iter().map(contract).collect()
}

/// Returns whether a path matches a template.
fn matches_template(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (mut template_parts, mut path_parts) = (template.split('/'), path.split('/'));
    loop {
        match (template_parts.next(), path_parts.next()) {
            (None, None) => return true,
            (Some(rest), Some(_)) if rest.starts_with("{*") => return true,
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => {}
            (Some(expected), Some(actual)) if expected == actual => {}
            _ => return false,
        }
    }
}
