//! Builds one operation of the `OpenAPI` document.

use std::collections::{BTreeMap, BTreeSet};

use app::domain::access::Permission;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::OpenApiVersion;
use super::schemas::Schemas;
use crate::http::operation::doc::{ContentDoc, HeaderDoc, ResponseDoc};
use crate::http::problem::codes::ProblemCode;
use crate::http::routes::{DeclaredRoute, RouteAccess};
use crate::service::access::Requirement;

/// Describes a route.
pub fn describe_operation(version: OpenApiVersion, route: &DeclaredRoute, schemas: &mut Schemas) -> Value {
    let (doc, access) = (&route.doc, route.access);
    let permissions = access.permissions();
    let mut operation = json!({
        "operationId": doc.id,
        "tags": [route.tag],
        "summary": doc.summary,
        "description": describe_access(doc.description, access, &permissions),
        "security": security(access),
        "x-access": access.as_str(),
        "x-permissions": permissions,
        "parameters": parameters(route, schemas),
        "responses": responses(version, route, schemas),
    });
    if let Some(body) = request_body(version, route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

const RECENT_PASSWORD_NOTE: &str =
    "A browser session must have confirmed its password in the last 15 minutes (`POST /api/session/proof`).";

/// Returns the description with the access requirements.
fn describe_access(detail: &str, access: RouteAccess, permissions: &[&str]) -> String {
    let permission_names = || permissions.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let requirement = match access {
        RouteAccess::Anyone => "Requires no authentication.".to_owned(),
        RouteAccess::Registration => "Requires a worker token.".to_owned(),
        RouteAccess::Worker(_) => "Requires a worker's session; for older agents, its token.".to_owned(),
        RouteAccess::Job => "Requires the job token; for older agents, the worker token.".to_owned(),
        RouteAccess::Principal(Requirement::Login) => "Requires authentication, but no permission.".to_owned(),
        RouteAccess::Principal(Requirement::AnyOf(any)) => format!("Requires {}.", one_of(any)),
        RouteAccess::Principal(Requirement::OwnTokenOr(any)) => {
            format!("Requires {}; a token needs none for itself.", one_of(any))
        }
        RouteAccess::Principal(Requirement::CancelJob) => {
            format!(
                "Requires the permissions {}; for jobs of other users `job.view.all` and `job.cancel.all`.",
                permission_names()
            )
        }
        RouteAccess::Principal(Requirement::DescribeJob) => format!(
            "Requires the permissions {}; for jobs of other users `job.view.all` and `queue.manage`.",
            permission_names()
        ),
        RouteAccess::Principal(Requirement::SeeJobs | Requirement::SeeJob | Requirement::SeeJobAnd(_)) => {
            format!("Requires {}; for jobs of other users `job.view.all`.", permission_names())
        }
        RouteAccess::Principal(Requirement::Permission(_)) => format!("Requires {}.", permission_names()),
        RouteAccess::Principal(Requirement::RecentlyAuthenticated(_)) => {
            format!("Requires {}. {RECENT_PASSWORD_NOTE}", permission_names())
        }
    };
    if detail.is_empty() { requirement } else { format!("{detail} {requirement}") }
}

fn one_of(permissions: &[Permission]) -> String {
    permissions.iter().map(|permission| format!("`{}`", permission.as_str())).collect::<Vec<_>>().join(" or ")
}

fn security(access: RouteAccess) -> Value {
    match access {
        RouteAccess::Anyone => json!([]),
        RouteAccess::Principal(_) => json!([{"bearer": []}, {"apiKey": []}, {"session": []}]),
        RouteAccess::Registration | RouteAccess::Worker(_) => json!([{"workerToken": []}]),
        RouteAccess::Job => json!([{"workerToken": []}, {"jobToken": []}]),
    }
}

fn parameters(route: &DeclaredRoute, schemas: &mut Schemas) -> Vec<Value> {
    let mut all: Vec<Value> = route.parameters().map(path_parameter).collect();
    if let Some(query) = route.signature.query {
        all.extend(schemas.query_fields(query).into_iter().map(|(name, mut schema, required)| {
            let description = schema.as_object_mut().and_then(|fields| fields.remove("description"));
            json!({"name": name, "in": "query", "required": required, "description": description, "schema": schema})
        }));
    }
    let header = |HeaderDoc { name, description }: &HeaderDoc| json!({"name": name, "in": "header", "required": false, "description": description, "schema": {"type": "string"}});
    all.extend(route.signature.headers.iter().chain(route.doc.headers).map(header));
    all
}

fn path_parameter(name: &str) -> Value {
    let (description, schema) = match name {
        "id" => ("The id.", json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})),
        "path" => {
            ("The path below the job's output; it may contain slashes.", json!({"type": "string", "minLength": 1}))
        }
        _ => ("The name.", json!({"type": "string", "minLength": 1})),
    };
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

fn request_body(version: OpenApiVersion, route: &DeclaredRoute, schemas: &mut Schemas) -> Option<Value> {
    if let Some((schema, required)) = route.signature.body {
        let schema = schemas.request_schema(schema);
        return Some(json!({"required": required, "content": {"application/json": {"schema": schema}}}));
    }
    let media = content(version, route.doc.body.as_ref()?, schemas);
    Some(json!({"required": true, "content": media}))
}

fn responses(version: OpenApiVersion, route: &DeclaredRoute, schemas: &mut Schemas) -> Value {
    let mut all = json!({});
    for response in route.signature.responses.iter().chain(route.doc.responses) {
        let entry = &mut all[response.status.to_string()];
        entry["description"] = response.description.into();
        entry["headers"] = response_headers(response);
        for (media, described) in content(version, &response.content, schemas) {
            entry["content"][media] = described;
        }
    }
    for (status, codes) in group_by_status(&route.problems()) {
        let names: Vec<&str> = codes.iter().map(|code| code.name).collect();
        let entry = &mut all[status.to_string()];
        if entry.is_null() {
            *entry = schemas
                .shared_response(format!("{status}.{}", names.join(".")), problem_response(status, &codes, &names));
        } else {
            let problem = problem_response(status, &codes, &names);
            let description =
                format!("{} {}", entry["description"].as_str().unwrap_or_default(), describe_codes(&codes));
            entry["description"] = description.into();
            entry["content"][PROBLEM] = problem["content"][PROBLEM].clone();
        }
    }
    all
}

const PROBLEM: &str = "application/problem+json";

/// Returns the response for these problems.
fn problem_response(status: u16, codes: &[&ProblemCode], names: &[&str]) -> Value {
    let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Problem");
    let mut headers =
        json!({"X-Request-Id": header_reference("X-Request-Id"), "API-Version": header_reference("API-Version")});
    match status {
        401 => headers["WWW-Authenticate"] = header_reference("WWW-Authenticate"),
        429 | 503 => headers["Retry-After"] = header_reference("Retry-After"),
        _ => {}
    }
    let schema = json!({"$ref": "#/components/schemas/Problem", "properties": {"code": {"enum": names}}});
    json!({
        "description": format!("{title}. {}", describe_codes(codes)),
        "headers": headers,
        "content": {PROBLEM: {"schema": schema}},
    })
}

fn describe_codes(codes: &[&ProblemCode]) -> String {
    codes.iter().map(|code| format!("`{}`: {}", code.name, code.meaning)).collect::<Vec<_>>().join(" ")
}

fn header_reference(header: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{header}")})
}

fn response_headers(response: &ResponseDoc) -> Value {
    let mut headers =
        json!({"X-Request-Id": header_reference("X-Request-Id"), "API-Version": header_reference("API-Version")});
    for HeaderDoc { name, description } in response.headers {
        headers[*name] = json!({"description": description, "schema": {"type": "string"}});
    }
    headers
}

fn content(version: OpenApiVersion, content: &ContentDoc, schemas: &mut Schemas) -> Map<String, Value> {
    let media_entry = |media: &str, described: Value| Map::from_iter([(media.to_owned(), described)]);
    match content {
        ContentDoc::Empty => Map::new(),
        ContentDoc::Json(schema) => {
            media_entry("application/json", json!({"schema": schemas.response_schema(*schema)}))
        }
        ContentDoc::Lines(schema) => {
            media_entry("application/x-ndjson", sequence_content(version, &schemas.response_schema(*schema)))
        }
        ContentDoc::Events { names, data } => {
            let data = json!({
                "type": "string", "contentMediaType": "application/json", "contentSchema": schemas.response_schema(*data),
            });
            let mut event = json!({
                "type": "object", "required": ["data"],
                "properties": {"id": {"type": "string"}, "retry": {"type": "integer", "minimum": 0}, "data": data},
            });
            if !names.is_empty() {
                event["properties"]["event"] = json!({"type": "string", "enum": names});
            }
            media_entry("text/event-stream", sequence_content(version, &event))
        }
        ContentDoc::Bytes(media) => media.iter().map(|media| ((*media).to_owned(), json!({"schema": {}}))).collect(),
        ContentDoc::Form(fields) => {
            let field = |(name, description): &(&str, &str)| {
                ((*name).to_owned(), json!({"type": "string", "description": description}))
            };
            let fields: Map<String, Value> = fields.iter().map(field).collect();
            media_entry(
                "application/x-www-form-urlencoded",
                json!({"schema": {"type": "object", "properties": fields}}),
            )
        }
    }
}

/// Describes a sequence: 3.2 has a schema for its items; in 3.1 it is text, with the schema in an extension.
fn sequence_content(version: OpenApiVersion, item: &Value) -> Value {
    match version {
        OpenApiVersion::V3_2 => json!({"itemSchema": item}),
        OpenApiVersion::V3_1 => json!({"schema": {"type": "string"}, "x-itemSchema": item}),
    }
}

fn group_by_status(names: &BTreeSet<&'static str>) -> BTreeMap<u16, Vec<&'static ProblemCode>> {
    let mut codes_by_status: BTreeMap<u16, Vec<&'static ProblemCode>> = BTreeMap::new();
    for code in names.iter().filter_map(|name| ProblemCode::find(name)) {
        for status in code.statuses {
            codes_by_status.entry(*status).or_default().push(code);
        }
    }
    codes_by_status
}

impl DeclaredRoute {
    /// Returns all problems that the route can return, those of its guards included.
    pub fn problems(&self) -> BTreeSet<&'static str> {
        let mut all: BTreeSet<&'static str> = ["multiple_hosts", "unknown_host", "internal_error"].into();
        all.extend(self.doc.problems.iter().chain(&self.signature.problems).copied());
        let is_change = self.method != Method::GET;
        if is_change {
            all.insert("cross_site_request");
        }
        all.extend(self.access.problems());
        all.insert("too_many_requests");
        if self.access != RouteAccess::Anyone {
            all.extend(["database_unavailable", "inconsistent_row"]);
            all.extend(is_change.then_some("concurrent_change"));
        }
        all.extend(self.parameters().next().is_some().then_some("not_found"));
        all
    }
}

impl RouteAccess {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Principal(_) => "principal",
            Self::Registration | Self::Worker(_) => "worker",
            Self::Job => "job",
        }
    }

    /// Returns the permissions that it requires at least.
    pub fn permissions(self) -> Vec<&'static str> {
        use Permission as P;
        let required = match self {
            Self::Principal(Requirement::Permission(permission) | Requirement::RecentlyAuthenticated(permission)) => {
                vec![permission]
            }
            Self::Principal(Requirement::SeeJobs | Requirement::SeeJob) => vec![P::JobViewOwn],
            Self::Principal(Requirement::CancelJob) => vec![P::JobCancelOwn, P::JobViewOwn],
            Self::Principal(Requirement::DescribeJob) => vec![P::JobSubmit, P::JobViewOwn],
            Self::Principal(Requirement::SeeJobAnd(permission)) => vec![permission, P::JobViewOwn],
            // No permission that all callers must have.
            Self::Principal(Requirement::Login | Requirement::AnyOf(_) | Requirement::OwnTokenOr(_))
            | Self::Anyone
            | Self::Registration
            | Self::Worker(_)
            | Self::Job => vec![],
        };
        required.into_iter().map(P::as_str).collect()
    }

    fn problems(self) -> &'static [&'static str] {
        match self {
            Self::Anyone => &[],
            Self::Principal(Requirement::Login) => &["not_authenticated", "wrong_token"],
            Self::Principal(
                Requirement::Permission(_) | Requirement::SeeJobs | Requirement::AnyOf(_) | Requirement::OwnTokenOr(_),
            ) => &["not_authenticated", "wrong_token", "permission_denied"],
            Self::Principal(Requirement::RecentlyAuthenticated(_)) => {
                &["not_authenticated", "wrong_token", "permission_denied", "password_needed"]
            }
            Self::Principal(
                Requirement::SeeJob | Requirement::CancelJob | Requirement::DescribeJob | Requirement::SeeJobAnd(_),
            ) => &["not_authenticated", "wrong_token", "permission_denied", "job_not_found"],
            Self::Registration => &[
                "worker_token_missing",
                "worker_token_invalid",
                "worker_retired",
                "worker_token_expired",
                "network_not_allowed",
                "worker_not_found",
            ],
            Self::Worker(_) => &[
                "not_registered",
                "token_in_use",
                "worker_token_missing",
                "worker_token_invalid",
                "worker_retired",
                "worker_token_expired",
                "network_not_allowed",
                "worker_not_found",
            ],
            Self::Job => &[
                "job_token_required",
                "not_registered",
                "token_in_use",
                "worker_token_missing",
                "worker_token_invalid",
                "worker_retired",
                "worker_token_expired",
                "network_not_allowed",
                "worker_not_found",
                "job_not_found",
                "other_attempt",
                "attempt_not_found",
            ],
        }
    }
}
