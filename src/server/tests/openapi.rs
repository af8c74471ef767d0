//! The `OpenAPI` document is complete, valid and correct. `api_contract` compares all responses with it in every test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use serde_json::Value;

use super::harness::{Actor, TestServer, read_response};
use crate::http::problem::codes::CODES;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub async fn description(server: &TestServer) -> Value {
    server.get(&Actor::Unauthenticated, "/api/openapi.json").await.expect_status(200)
}

/// Returns every operation: method, path and description.
pub fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let path_operations =
        |(path, item): (&String, &'_ Value)| (path.clone(), item.as_object().expect("operations").clone());
    let keys = paths
        .map(path_operations)
        .flat_map(|(path, item)| item.keys().map(|method| (method.clone(), path.clone())).collect::<Vec<_>>());
    let keys: Vec<_> = keys.collect();
    keys.into_iter().map(|(method, path)| (method.clone(), path.clone(), &document["paths"][path][method])).collect()
}

fn walk(value: &Value, visit: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            visit(fields);
            fields.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[tokio::test]
async fn exactly_all_routes_are_documented() {
    let server = TestServer::start().await;
    let document = description(&server).await;
    let described: BTreeSet<_> =
        operations(&document).into_iter().map(|(method, path, _)| (method.to_uppercase(), path)).collect();
    let declared: Vec<_> = crate::http::declared_routes(&server.app)
        .iter()
        .map(|route| (route.method.to_string(), route.template()))
        .collect();
    assert_eq!(declared.len(), described.len(), "each route is declared once");
    assert_eq!(declared.into_iter().collect::<BTreeSet<_>>(), described);
    for (method, path) in described {
        let response = server.open(&Actor::Admin, &method, &path.replace(['{', '}'], ""), "").await;
        assert_ne!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path} is not served");
        if response.status() == StatusCode::NOT_FOUND {
            assert_ne!(read_response(response).await.json()["code"], "no_such_route", "{method} {path} is not served");
        }
    }
}

#[test]
fn routes_are_declared_in_one_way() {
    let mut paths = vec![root("src/server/http")];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).expect("readable").flatten().map(|entry| entry.path()));
        } else if !path.ends_with("http/routes.rs") {
            let text = fs::read_to_string(&path).expect("text");
            assert!(!text.contains(".route("), "{}: use http::routes, which requires a description", path.display());
        }
    }
}

#[tokio::test]
async fn document_is_valid() {
    let server = TestServer::start().await;
    for (path, version) in [("/api/openapi.json", "3.2."), ("/api/openapi-3.1.json", "3.1.")] {
        let document = server.get(&Actor::Unauthenticated, path).await.expect_status(200);
        assert!(document["openapi"].as_str().is_some_and(|text| text.starts_with(version)));
        let tags: BTreeSet<_> =
            document["tags"].as_array().expect("tags").iter().map(|tag| tag["name"].to_string()).collect();
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            let route = format!("{method} {path}");
            assert!(METHODS.contains(&method.as_str()), "{route}");
            assert!(ids.insert(operation["operationId"].to_string()), "{route}: a unique id");
            let summary = operation["summary"].as_str().expect("a summary");
            assert!(summary.ends_with('.') && summary.len() < 120, "{route}: one sentence");
            assert!(
                operation["tags"].as_array().is_some_and(|all| all.iter().all(|tag| tags.contains(&tag.to_string()))),
                "{route}"
            );
            assert_well_described(&document, &route, &path, operation);
        }
        let mut references = Vec::new();
        walk(&document, &mut |fields| references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned)));
        assert!(references.len() > 100, "types are named once and referred to");
        for reference in references {
            let found = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
            assert!(found.is_some(), "{reference} does not exist");
        }
    }
}

fn assert_well_described(document: &Value, route: &str, path: &str, operation: &Value) {
    let in_path: BTreeSet<&str> = path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
    let parameters = operation["parameters"].as_array().expect("parameters");
    let named: BTreeSet<&str> = parameters
        .iter()
        .filter(|parameter| parameter["in"] == "path")
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(in_path, named, "{route}");
    for parameter in parameters {
        assert!(parameter["schema"].is_object(), "{route}: {parameter}");
        assert!(parameter["description"].as_str().is_some_and(|text| text.ends_with('.')), "{route}: {parameter}");
    }
    let responses = operation["responses"].as_object().expect("responses");
    assert!(
        responses.keys().any(|status| status.starts_with(['2', '3'])),
        "{route}: the response of a successful request"
    );
    for (status, response) in responses {
        let shared = response["$ref"].as_str().and_then(|reference| document.pointer(&reference[1..]));
        let response = shared.unwrap_or(response);
        assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{route}: {status}");
    }
    let (access, permissions) = (&operation["x-access"], operation["x-permissions"].as_array().expect("a list"));
    let open = operation["security"].as_array().expect("security").is_empty();
    assert_eq!(open, access == "anyone", "{route}");
    assert_eq!(open, !responses.contains_key("401"), "{route}");
    let text = operation["description"].as_str().expect("a description");
    assert!(permissions.iter().all(|name| text.contains(name.as_str().expect("text"))), "{route}: {text}");
    let describes = |phrase: &str| text.contains(phrase);
    assert!(
        describes("Requires ") && (!open || describes("Requires no authentication")),
        "{route}: the requirements: {text}"
    );
}

/// The requirements of `scripts/clients`, as far as they can be tested without generating clients.
#[tokio::test]
async fn generated_clients_get_named_enums_and_complete_types() {
    let server = TestServer::start().await;
    let document = description(&server).await;
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    assert_eq!(schemas["JobStatus"]["enum"][0], "queued");
    walk(&document["components"]["schemas"], &mut |fields| {
        let choices = fields.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        for choice in choices {
            assert!(choice.get("const").is_none(), "an enum has a name in every language: {choice}");
        }
        let has_both = fields.contains_key("$ref") && fields.contains_key("properties");
        assert!(!has_both, "many generators ignore keywords beside a reference: {fields:?}");
    });
    for (name, schema) in schemas {
        // In Python, a field and its accessor share the namespace of one function and one type.
        let fields = schema["properties"].as_object().into_iter().flatten();
        let mut typed = fields.filter(|(_, schema)| schema["type"] != "boolean");
        let same_named_field = typed.find(|(field, _)| field.replace('_', "") == name.to_lowercase());
        assert!(same_named_field.is_none(), "{name} has a field with its own name");
    }
}

#[tokio::test]
async fn events_are_typed_in_version_3_2() {
    let server = TestServer::start().await;
    let document = description(&server).await;
    let item = |path: &str| {
        let media = &document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"];
        media["itemSchema"]["properties"]["data"]["contentSchema"]["$ref"].as_str().map(str::to_owned)
    };
    assert_eq!(item("/api/workers/stream").as_deref(), Some("#/components/schemas/WorkerEvent"));
    assert_eq!(item("/api/events").as_deref(), Some("#/components/schemas/TopicsChanged"));
    assert_eq!(item("/api/queue/{id}/logs").as_deref(), Some("#/components/schemas/LogChunk"));
}

/// `RENEW=1 cargo test --no-default-features --features ssr --bin simpletuner openapi` writes the file.
#[tokio::test]
async fn api_changes_are_reviewed() {
    let server = TestServer::start().await;
    let current = serde_json::to_string_pretty(&description(&server).await).expect("JSON") + "\n";
    assert_reviewed("docs/openapi.json", &current);
}

/// Compares with a file in the repository, so that changes are reviewed; `RENEW=1` writes the file.
pub fn assert_reviewed(file: &str, actual: &str) {
    if std::env::var_os("RENEW").is_some() {
        fs::write(root(file), actual).expect("writable");
    }
    let stored = fs::read_to_string(root(file)).unwrap_or_default();
    let difference = stored.lines().zip(actual.lines()).find(|(stored, actual)| stored != actual);
    assert!(stored == actual, "{file} has changed ({difference:?}); if that is intended, run this test with RENEW=1");
}

#[test]
fn every_problem_code_is_in_the_guide() {
    let names: BTreeSet<&str> = CODES.iter().map(|code| code.name).collect();
    assert_eq!(names.len(), CODES.len(), "each code is listed once");
    let guide = fs::read_to_string(root("docs/API.md")).expect("docs/API.md");
    for code in CODES {
        let statuses = code.statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let row = format!("| `{}` | {statuses} | {} |", code.name, code.meaning);
        assert!(guide.contains(&row), "docs/API.md lacks the row\n{row}");
    }
    let rows = guide.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 4);
    assert_eq!(rows.count(), CODES.len(), "docs/API.md has rows of unknown codes");
}
