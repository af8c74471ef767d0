//! Creates an example call of an operation with curl.

use serde_json::{Map, Value, json};

/// Maximum depth of an example.
const MAX_DEPTH: usize = 4;

/// Returns the command.
pub fn curl(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let mut parts = vec!["curl -s".to_owned()];
    if operation["responses"]["200"]["content"].get("text/event-stream").is_some() {
        parts.push("N".to_owned());
    }
    let body = operation["requestBody"]["content"].as_object();
    let json = body.and_then(|body| body.get("application/json"));
    let default_method = if body.is_some() { "post" } else { "get" };
    if method != default_method {
        parts.push(format!(" -X {}", method.to_uppercase()));
    }
    let path = path.split('{').enumerate().fold(String::new(), |path, (index, part)| match part.split_once('}') {
        Some((name, rest)) if index > 0 => format!("{path}${}{rest}", name.to_uppercase()),
        _ => path + part,
    });
    parts.push(format!(" \"$ORCHESTRATOR{path}\""));
    let auth_header = match operation["x-access"].as_str() {
        Some("principal") => " \\\n  -H \"Authorization: Bearer $API_TOKEN\"",
        Some("worker") => " \\\n  -H \"X-Worker-Token: $SIMPLETUNER_WORKER_TOKEN\"",
        Some("job") => " \\\n  -H \"X-Upload-Token: $SIMPLETUNER_UPLOAD_TOKEN\"",
        _ => "",
    };
    parts.push(auth_header.to_owned());
    if let Some(json) = json {
        parts.push(format!(" \\\n  -d '{}'", example_value(document, &json["schema"], MAX_DEPTH)));
    } else if let Some(body) = body {
        let is_form = body.contains_key("application/x-www-form-urlencoded");
        let data = if is_form { " \\\n  -d 'name=…' -d 'password=…'" } else { " \\\n  --data-binary @FILE" };
        parts.push(data.to_owned());
    }
    parts.concat()
}

/// Returns a minimal value for a schema.
fn example_value(document: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return example_value(document, &super::page::resolve_reference(document, reference), depth);
    }
    if let Some(example) = schema["examples"].get(0).or_else(|| schema["enum"].get(0)).or_else(|| schema.get("const")) {
        return example.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => {
            let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let field = |name: &str| (name.to_owned(), example_value(document, &schema["properties"][name], depth - 1));
            if depth == 0 { json!({}) } else { Value::Object(names.map(field).collect::<Map<_, _>>()) }
        }
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        _ => json!("…"),
    }
}
