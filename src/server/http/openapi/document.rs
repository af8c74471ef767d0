//! The `OpenAPI` document: description, authentication, and all operations.

use serde_json::{Value, json};

use super::operation::describe_operation;
use super::schemas::Schemas;
use crate::http::operation::doc::schema_of;
use crate::http::problem::codes::CODES;
use crate::http::routes::DeclaredRoute;
use app::protocol::problem::Problem;

/// A version of `OpenAPI`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenApiVersion {
    /// 3.1, which most tools support.
    V3_1,
    /// 3.2, which can describe the items of a stream.
    V3_2,
}

/// The areas in the order of the documentation.
const TAGS: &[(&str, &str)] = &[
    ("Jobs", "Submit, explain, follow and cancel training jobs."),
    ("Configurations", "What jobs run: directories of text files with revisions."),
    ("Workers", "GPU hosts, for admins."),
    ("Account", "The caller's own password, API tokens and sessions."),
    ("Secrets", "Values for the environment of jobs; write-only."),
    ("Shares", "Teams, and who gets how much of the fleet."),
    ("Users", "Users and their roles, for admins."),
    ("Audit", "Who did what, and when."),
    ("Search", "Search in everything that the caller may see."),
    ("Usage", "GPU usage of the fleet."),
    ("System", "Configuration and state of the server, for operators."),
    ("Events", "Live change notifications."),
    ("Agents", "The API of agents on GPU hosts."),
    ("Login", "Sign-in of browsers. Scripts use API tokens."),
    ("Health", "Health and metrics."),
    ("Description", "This description."),
];

const DESCRIPTION: &str = "The API of a simpletuner orchestrator. An error is a problem document (RFC 9457) whose `code` \
is stable; `detail` says what is wrong and what to do. Unknown fields are ignored, in requests as in responses: \
new ones may be added at any time, and none changes its meaning. Times are RFC 3339 in UTC. Lists that can be long \
accept `limit` and `cursor`, and return `next_cursor` if there are more items. Every response has the header \
`X-Request-Id`; include it when you ask for help.";

/// Builds the document for these routes.
pub fn build_document(version: OpenApiVersion, routes: &[DeclaredRoute]) -> Value {
    let mut schemas = Schemas::new();
    schemas.response_schema(schema_of::<Problem>);
    let mut paths = json!({});
    for route in routes {
        let method = route.method.as_str().to_ascii_lowercase();
        paths[route.template()][method] = describe_operation(version, route, &mut schemas);
    }
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect();
    let codes: serde_json::Map<_, _> = CODES.iter().map(|code| (code.name.to_owned(), code.meaning.into())).collect();
    let mut document = json!({
        "openapi": match version { OpenApiVersion::V3_1 => "3.1.1", OpenApiVersion::V3_2 => "3.2.0" },
        "info": {
            "title": "simpletuner", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server of this document."}],
        "tags": tags,
        "paths": paths,
        "components": {"securitySchemes": security_schemes(), "headers": headers()},
        "x-problem-codes": codes,
    });
    schemas.finish(&mut document);
    strip_doc_links(&mut document);
    document
}

fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API token of a user."},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same, in another header."},
        "session": {
            "type": "apiKey", "in": "cookie", "name": "sid",
            "description": "A browser session; `__Host-sid` over HTTPS.",
        },
        "workerToken": {
            "type": "apiKey", "in": "header", "name": "X-Worker-Token", "description": "A worker token, `wt_…`, to register; then the session, `ws_…`, from the response.",
        },
        "jobToken": {
            "type": "apiKey", "in": "header", "name": "X-Upload-Token",
            "description": "The token of one attempt, `jt_…`, from its offer.",
        },
    })
}

fn headers() -> Value {
    json!({
        "X-Request-Id": {"description": "ID of the request in logs and the audit log.", "schema": {"type": "string"}},
        "API-Version": {"description": "Incremented when something is removed from the API.", "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait before a retry.", "schema": {"type": "integer", "minimum": 0}},
        "WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}},
    })
}

/// Removes links to other doc comments, which do not exist in the document.
fn strip_doc_links(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`").replace("super::", "").replace('\n', " ");
                    }
                    other => strip_doc_links(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_doc_links),
        _ => {}
    }
}
