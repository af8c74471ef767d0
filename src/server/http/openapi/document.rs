//! The description as a whole: what it is about, how one gets in, and all operations.

use serde_json::{Value, json};

use super::doc::schema_of;
use super::operation::operation;
use super::schemas::Schemas;
use crate::http::problem::codes::CODES;
use crate::http::routes::Declared;
use app::protocol::problem::Problem;

/// Which version of `OpenAPI`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.1, which most programs know.
    V3_1,
    /// 3.2, which can say what the events of a stream are.
    V3_2,
}

/// The areas, in the order in which they are read.
const TAGS: &[(&str, &str)] = &[
    ("Jobs", "Submit training jobs, see why they wait, follow and end them."),
    ("Configurations", "What jobs run: directories of text files, kept with their revisions."),
    ("Workers", "The GPU machines, for administrators."),
    ("Account", "What is the caller's own: password, API tokens, sessions."),
    ("Secrets", "Values that jobs find in their environment, and nobody reads back."),
    ("People", "Who there is and what they may do, for administrators."),
    ("Audit", "Who did what, and when."),
    ("Search", "Anything that the caller may see, by a few characters of it."),
    ("Usage", "What the fleet's GPUs were used for."),
    ("System", "How the server is set up, and how it does, for whoever runs it."),
    ("Events", "What changed, as it happens."),
    ("Agents", "What the agents on the GPU machines use: the contract of workers."),
    ("Login", "How browsers get in. Scripts use API tokens."),
    ("Health", "Whether the server does its work."),
    ("Description", "This description."),
];

const ABOUT: &str = "The API of a simpletuner orchestrator. A refusal is a problem document (RFC 9457) whose `code` \
is stable; `detail` says what is wrong and what to do. Unknown fields are ignored, in requests as in answers: new \
ones may come at any time, none changes its meaning. Moments are RFC 3339 in UTC. Lists that can be long take `limit` \
and `cursor`, and answer `next_cursor` where there is more. Every answer carries `X-Request-Id`; name it when asking \
for help.";

/// The document for these routes.
pub fn document(version: Version, routes: &[Declared]) -> Value {
    let mut schemas = Schemas::new();
    schemas.written(schema_of::<Problem>);
    let mut paths = json!({});
    for route in routes {
        let method = route.method.as_str().to_ascii_lowercase();
        paths[route.template()][method] = operation(version, route, &mut schemas);
    }
    let tags: Vec<Value> = TAGS.iter().map(|(name, about)| json!({"name": name, "description": about})).collect();
    let codes: serde_json::Map<_, _> = CODES.iter().map(|code| (code.name.to_owned(), code.meaning.into())).collect();
    let mut document = json!({
        "openapi": match version { Version::V3_1 => "3.1.1", Version::V3_2 => "3.2.0" },
        "info": {
            "title": "simpletuner", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that this comes from."}],
        "tags": tags,
        "paths": paths,
        "components": {"securitySchemes": security_schemes(), "headers": headers()},
        "x-problem-codes": codes,
    });
    schemas.finish(&mut document);
    tidied(&mut document);
    document
}

fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API token of a person."},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same, in another header."},
        "session": {
            "type": "apiKey", "in": "cookie", "name": "sid",
            "description": "A browser that is logged in; `__Host-sid` over HTTPS.",
        },
        "workerToken": {
            "type": "apiKey", "in": "header", "name": "X-Worker-Token", "description": "A worker's token, `wt_…`, to register; then the session, `ws_…`, that the answer has.",
        },
        "jobToken": {
            "type": "apiKey", "in": "header", "name": "X-Upload-Token",
            "description": "The token of one attempt, `jt_…`, from its offer.",
        },
    })
}

fn headers() -> Value {
    json!({
        "X-Request-Id": {"description": "The request's name in logs and the audit trail.", "schema": {"type": "string"}},
        "API-Version": {"description": "Grows when something is taken away from the API.", "schema": {"type": "string"}},
        "Retry-After": {"description": "After how many seconds to try again.", "schema": {"type": "integer", "minimum": 0}},
        "WWW-Authenticate": {"description": "How to say who is asking.", "schema": {"type": "string"}},
    })
}

/// Comments of the source refer to other comments; here they stand alone.
fn tidied(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`").replace("super::", "").replace('\n', " ");
                    }
                    other => tidied(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidied),
        _ => {}
    }
}
