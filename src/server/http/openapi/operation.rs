//! One operation of the description.

use std::collections::{BTreeMap, BTreeSet};

use app::domain::access::Permission;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::Version;
use super::doc::{Answer, Content, Header};
use super::schemas::Schemas;
use crate::http::problem::codes::Code;
use crate::http::routes::{Access, Declared};
use crate::service::access::Needs;

/// Describes a route.
pub fn operation(version: Version, route: &Declared, schemas: &mut Schemas) -> Value {
    let (doc, access) = (&route.doc, route.access);
    let permissions = access.permissions();
    let mut operation = json!({
        "operationId": doc.id,
        "tags": [route.tag],
        "summary": doc.summary,
        "description": described(doc.detail, access, &permissions),
        "security": security(access),
        "x-access": access.as_str(),
        "x-permissions": permissions,
        "parameters": parameters(route, schemas),
        "responses": responses(version, route, schemas),
    });
    if let Some(body) = body(version, route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

const RECENT: &str =
    "A browser's session must have given its password in the last 15 minutes (`POST /api/session/proof`).";

/// The particulars, and who may do it.
fn described(detail: &str, access: Access, permissions: &[&str]) -> String {
    let named = || permissions.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let who = match access {
        Access::Anyone => "Open to everybody.".to_owned(),
        Access::Newcomer => "Takes a worker's token.".to_owned(),
        Access::Worker(_) => "Takes a worker's session; from older agents, its token.".to_owned(),
        Access::Job => "Takes the job's token; from older agents, the worker's.".to_owned(),
        Access::Person(Needs::Login) => "Takes no permission beyond being logged in.".to_owned(),
        Access::Person(Needs::AnyOf(any)) => format!("Takes {}.", one_of(any)),
        Access::Person(Needs::OwnTokenOr(any)) => {
            format!("Takes {}; a token needs none to name itself.", one_of(any))
        }
        Access::Person(Needs::CancelJob) => {
            format!("Takes the permissions {}; for jobs of others `job.view.all` and `job.cancel.all`.", named())
        }
        Access::Person(Needs::SeeJobs | Needs::SeeJob | Needs::SeeJobAnd(_)) => {
            format!("Takes {}; for jobs of others `job.view.all`.", named())
        }
        Access::Person(Needs::To(_)) => format!("Takes {}.", named()),
        Access::Person(Needs::ToProved(_)) => format!("Takes {}. {RECENT}", named()),
    };
    if detail.is_empty() { who } else { format!("{detail} {who}") }
}

fn one_of(permissions: &[Permission]) -> String {
    permissions.iter().map(|one| format!("`{}`", one.as_str())).collect::<Vec<_>>().join(" or ")
}

fn security(access: Access) -> Value {
    match access {
        Access::Anyone => json!([]),
        Access::Person(_) => json!([{"bearer": []}, {"apiKey": []}, {"session": []}]),
        Access::Newcomer | Access::Worker(_) => json!([{"workerToken": []}]),
        Access::Job => json!([{"workerToken": []}, {"jobToken": []}]),
    }
}

fn parameters(route: &Declared, schemas: &mut Schemas) -> Vec<Value> {
    let mut all: Vec<Value> = route.parameters().map(in_path).collect();
    if let Some(query) = route.signature.query {
        all.extend(schemas.fields(query).into_iter().map(|(name, mut schema, required)| {
            let about = schema.as_object_mut().and_then(|fields| fields.remove("description"));
            json!({"name": name, "in": "query", "required": required, "description": about, "schema": schema})
        }));
    }
    let header = |Header { name, about }: &Header| json!({"name": name, "in": "header", "required": false, "description": about, "schema": {"type": "string"}});
    all.extend(route.signature.headers.iter().chain(route.doc.headers).map(header));
    all
}

fn in_path(name: &str) -> Value {
    let (about, schema) = match name {
        "id" => ("The id.", json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})),
        "path" => ("The path below the job's output; it may have slashes.", json!({"type": "string", "minLength": 1})),
        _ => ("The name.", json!({"type": "string", "minLength": 1})),
    };
    json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
}

fn body(version: Version, route: &Declared, schemas: &mut Schemas) -> Option<Value> {
    if let Some((schema, required)) = route.signature.body {
        let schema = schemas.read(schema);
        return Some(json!({"required": required, "content": {"application/json": {"schema": schema}}}));
    }
    let media = content(version, route.doc.body.as_ref()?, schemas);
    Some(json!({"required": true, "content": media}))
}

fn responses(version: Version, route: &Declared, schemas: &mut Schemas) -> Value {
    let mut all = json!({});
    for answer in route.signature.answers.iter().chain(route.doc.answers) {
        let entry = &mut all[answer.status.to_string()];
        entry["description"] = answer.about.into();
        entry["headers"] = answered_headers(answer);
        for (media, described) in content(version, &answer.content, schemas) {
            entry["content"][media] = described;
        }
    }
    for (status, codes) in by_status(&route.problems()) {
        let names: Vec<&str> = codes.iter().map(|code| code.name).collect();
        let entry = &mut all[status.to_string()];
        if entry.is_null() {
            *entry = schemas.shared(format!("{status}.{}", names.join(".")), problem(status, &codes, &names));
        } else {
            let problem = problem(status, &codes, &names);
            let both = format!("{} {}", entry["description"].as_str().unwrap_or_default(), meanings(&codes));
            entry["description"] = both.into();
            entry["content"][PROBLEM] = problem["content"][PROBLEM].clone();
        }
    }
    all
}

const PROBLEM: &str = "application/problem+json";

/// The answer that is one of these problems.
fn problem(status: u16, codes: &[&Code], names: &[&str]) -> Value {
    let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Problem");
    let mut headers = json!({"X-Request-Id": reference("X-Request-Id"), "API-Version": reference("API-Version")});
    match status {
        401 => headers["WWW-Authenticate"] = reference("WWW-Authenticate"),
        429 | 503 => headers["Retry-After"] = reference("Retry-After"),
        _ => {}
    }
    let schema = json!({"$ref": "#/components/schemas/Problem", "properties": {"code": {"enum": names}}});
    json!({
        "description": format!("{title}. {}", meanings(codes)),
        "headers": headers,
        "content": {PROBLEM: {"schema": schema}},
    })
}

fn meanings(codes: &[&Code]) -> String {
    codes.iter().map(|code| format!("`{}`: {}", code.name, code.meaning)).collect::<Vec<_>>().join(" ")
}

fn reference(header: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{header}")})
}

fn answered_headers(answer: &Answer) -> Value {
    let mut headers = json!({"X-Request-Id": reference("X-Request-Id"), "API-Version": reference("API-Version")});
    for Header { name, about } in answer.headers {
        headers[*name] = json!({"description": about, "schema": {"type": "string"}});
    }
    headers
}

fn content(version: Version, content: &Content, schemas: &mut Schemas) -> Map<String, Value> {
    let one = |media: &str, described: Value| Map::from_iter([(media.to_owned(), described)]);
    match content {
        Content::Nothing => Map::new(),
        Content::Json(schema) => one("application/json", json!({"schema": schemas.written(*schema)})),
        Content::Lines(schema) => one("application/x-ndjson", sequence(version, &schemas.written(*schema))),
        Content::Events { names, data } => {
            let data = json!({
                "type": "string", "contentMediaType": "application/json", "contentSchema": schemas.written(*data),
            });
            let mut event = json!({
                "type": "object", "required": ["data"],
                "properties": {"id": {"type": "string"}, "retry": {"type": "integer", "minimum": 0}, "data": data},
            });
            if !names.is_empty() {
                event["properties"]["event"] = json!({"type": "string", "enum": names});
            }
            one("text/event-stream", sequence(version, &event))
        }
        Content::Bytes(media) => media.iter().map(|media| ((*media).to_owned(), json!({"schema": {}}))).collect(),
        Content::Form(fields) => {
            let field =
                |(name, about): &(&str, &str)| ((*name).to_owned(), json!({"type": "string", "description": about}));
            let fields: Map<String, Value> = fields.iter().map(field).collect();
            one("application/x-www-form-urlencoded", json!({"schema": {"type": "object", "properties": fields}}))
        }
    }
}

/// One thing after another: 3.2 can say what each is, 3.1 only that there is text, so it says it beside.
fn sequence(version: Version, item: &Value) -> Value {
    match version {
        Version::V3_2 => json!({"itemSchema": item}),
        Version::V3_1 => json!({"schema": {"type": "string"}, "x-itemSchema": item}),
    }
}

fn by_status(names: &BTreeSet<&'static str>) -> BTreeMap<u16, Vec<&'static Code>> {
    let mut found: BTreeMap<u16, Vec<&'static Code>> = BTreeMap::new();
    for code in names.iter().filter_map(|name| Code::named(name)) {
        for status in code.statuses {
            found.entry(*status).or_default().push(code);
        }
    }
    found
}

impl Declared {
    /// Every problem that it can answer, its own and those of its surroundings.
    pub fn problems(&self) -> BTreeSet<&'static str> {
        let mut all: BTreeSet<&'static str> = ["several_hosts", "unknown_host", "internal_error"].into();
        all.extend(self.doc.problems.iter().chain(&self.signature.problems).copied());
        let changes = self.method != Method::GET;
        if changes {
            all.insert("cross_site_request");
        }
        all.extend(self.access.problems());
        all.insert("too_many_requests");
        if self.access != Access::Anyone {
            all.extend(["database_unavailable", "inconsistent_row"]);
            all.extend(changes.then_some("changed_meanwhile"));
        }
        all.extend(self.parameters().next().is_some().then_some("not_found"));
        all
    }
}

impl Access {
    /// In one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Person(_) => "person",
            Self::Newcomer | Self::Worker(_) => "worker",
            Self::Job => "job",
        }
    }

    /// The permissions that it takes at least.
    pub fn permissions(self) -> Vec<&'static str> {
        use Permission as P;
        let needed = match self {
            Self::Person(Needs::To(permission) | Needs::ToProved(permission)) => vec![permission],
            Self::Person(Needs::SeeJobs | Needs::SeeJob) => vec![P::JobViewOwn],
            Self::Person(Needs::CancelJob) => vec![P::JobCancelOwn, P::JobViewOwn],
            Self::Person(Needs::SeeJobAnd(permission)) => vec![permission, P::JobViewOwn],
            // None is needed by everybody.
            Self::Person(Needs::Login | Needs::AnyOf(_) | Needs::OwnTokenOr(_))
            | Self::Anyone
            | Self::Newcomer
            | Self::Worker(_)
            | Self::Job => vec![],
        };
        needed.into_iter().map(P::as_str).collect()
    }

    fn problems(self) -> &'static [&'static str] {
        match self {
            Self::Anyone => &[],
            Self::Person(Needs::Login) => &["not_authenticated", "wrong_token"],
            Self::Person(Needs::To(_) | Needs::SeeJobs | Needs::AnyOf(_) | Needs::OwnTokenOr(_)) => {
                &["not_authenticated", "wrong_token", "permission_denied"]
            }
            Self::Person(Needs::ToProved(_)) => {
                &["not_authenticated", "wrong_token", "permission_denied", "password_needed"]
            }
            Self::Person(Needs::SeeJob | Needs::CancelJob | Needs::SeeJobAnd(_)) => {
                &["not_authenticated", "wrong_token", "permission_denied", "job_not_found"]
            }
            Self::Newcomer => &[
                "worker_token_missing",
                "worker_token_refused",
                "worker_token_spent",
                "worker_token_expired",
                "network_not_allowed",
                "worker_not_found",
            ],
            Self::Worker(_) => &[
                "not_registered",
                "token_in_use",
                "worker_token_missing",
                "worker_token_refused",
                "worker_token_spent",
                "worker_token_expired",
                "network_not_allowed",
                "worker_not_found",
            ],
            Self::Job => &[
                "job_token_required",
                "not_registered",
                "token_in_use",
                "worker_token_missing",
                "worker_token_refused",
                "worker_token_spent",
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
