//! Renders the API page from the `OpenAPI` document.

use std::fmt::Write;

use serde_json::Value;

use super::example::curl;
use super::html::{EscapedText, Prose};

/// Prefix of references to schemas.
const SCHEMA_PREFIX: &str = "#/components/schemas/";

/// Returns the page's body.
pub fn render_page(document: &Value) -> String {
    let mut out = String::new();
    write_page(&mut out, document).expect("writing to a String cannot fail");
    out
}

fn write_page(out: &mut String, document: &Value) -> std::fmt::Result {
    let info = &document["info"];
    write!(
        out,
        "<body><a class=\"skip-link\" href=\"#content\">Skip to content</a><div class=\"doc\">\
         <header class=\"doc-head\"><a class=\"brand\" href=\"/\"><svg class=\"brand-mark\" viewBox=\"0 0 24 24\" \
         aria-hidden=\"true\"><path class=\"brand-bars\" d=\"M4 4v16M9 8v12M14 12v8M19 15v5\"></path><path \
         class=\"brand-needle\" d=\"M4 4c4 8 8 11 16 12\"></path></svg><span>simpletuner</span></a>\
         <a href=\"/api/openapi.json\">OpenAPI 3.2</a><a href=\"/api/openapi-3.1.json\">OpenAPI 3.1</a></header>\
         <main id=\"content\"><h1>API <span class=\"doc-note\">{}</span></h1><p>{}</p><nav class=\"doc-toc\" aria-label=\"Areas\">",
        EscapedText(text(&info["version"])),
        Prose(text(&info["description"])),
    )?;
    let tags = list(&document["tags"]);
    for tag in tags {
        let name = text(&tag["name"]);
        write!(out, "<a href=\"#{0}\">{0}</a>", EscapedText(name))?;
    }
    out.push_str("<a href=\"#Problems\">Problems</a><a href=\"#Types\">Types</a></nav>");
    for tag in tags {
        let name = text(&tag["name"]);
        let description = Prose(text(&tag["description"])).to_string();
        write!(out, "<section><h2 id=\"{0}\">{0}</h2><p class=\"doc-note\">{description}</p>", EscapedText(name))?;
        for (path, operations) in fields(&document["paths"]) {
            for (method, operation) in fields(operations) {
                if operation["tags"][0] == tag["name"] {
                    write_operation(out, document, method, path, operation)?;
                }
            }
        }
        out.push_str("</section>");
    }
    out.push_str("<section><h2 id=\"Problems\">Problems</h2><dl class=\"doc-rows\">");
    for (code, meaning) in fields(&document["x-problem-codes"]) {
        write_row(out, &format!("<code>{}</code>", EscapedText(code)), text(meaning))?;
    }
    out.push_str("</dl></section><section><h2 id=\"Types\">Types</h2>");
    for (name, schema) in fields(&document["components"]["schemas"]) {
        let description = Prose(text(&schema["description"])).to_string();
        write!(
            out,
            "<details class=\"panel doc-item\" id=\"{0}\"><summary><span class=\"doc-method\">{1}</span><h3>{0}</h3><p>{description}</p></summary><div class=\"doc-body\">",
            EscapedText(name),
            EscapedText(schema["type"].as_str().unwrap_or("one of")),
        )?;
        write_schema(out, schema)?;
        out.push_str("</div></details>");
    }
    out.push_str("</section></main></div></body></html>\n");
    Ok(())
}

fn write_operation(
    out: &mut String,
    document: &Value,
    method: &str,
    path: &str,
    operation: &Value,
) -> std::fmt::Result {
    write!(
        out,
        "<details class=\"panel doc-item\" id=\"{}\"><summary><span class=\"doc-method\">{}</span><h3><code>{}</code></h3><p>{}</p></summary><div class=\"doc-body\"><p>{}</p>",
        EscapedText(text(&operation["operationId"])),
        EscapedText(&method.to_uppercase()),
        EscapedText(path),
        Prose(text(&operation["summary"])),
        Prose(text(&operation["description"])),
    )?;
    let parameters = list(&operation["parameters"]);
    if !parameters.is_empty() {
        out.push_str("<h4>Parameters</h4><dl class=\"doc-rows\">");
        for parameter in parameters {
            let required = if parameter["required"] == true { ", required" } else { "" };
            let (name, location) = (EscapedText(text(&parameter["name"])), EscapedText(text(&parameter["in"])));
            let term = format!(
                "<code>{name}</code><small>{location}, {}{required}</small>",
                schema_kind(&parameter["schema"])
            );
            write_row(out, &term, text(&parameter["description"]))?;
        }
        out.push_str("</dl>");
    }
    for (media, body) in fields(&operation["requestBody"]["content"]) {
        let required = if operation["requestBody"]["required"] == true { "" } else { ", optional" };
        write!(out, "<h4>Body <span class=\"doc-note\">{}{required}</span></h4>", EscapedText(media))?;
        match body["schema"]["$ref"].as_str() {
            Some(reference) => {
                write!(out, "<p>{}</p>", schema_kind(&body["schema"]))?;
                write_schema(out, &resolve_reference(document, reference))?;
            }
            None => write_schema(out, &body["schema"])?,
        }
    }
    out.push_str("<h4>Responses</h4><dl class=\"doc-rows\">");
    for (status, response) in fields(&operation["responses"]) {
        let shared = response["$ref"].as_str().map(|reference| resolve_reference(document, reference));
        let response = shared.as_ref().unwrap_or(response);
        let mut term = format!("<code>{status}</code>");
        for (media, body) in fields(&response["content"]).filter(|(media, _)| *media != "application/problem+json") {
            let item =
                body.get("itemSchema").map(|item| item["properties"]["data"].get("contentSchema").unwrap_or(item));
            write!(term, "<small>{} {}</small>", EscapedText(media), schema_kind(item.unwrap_or(&body["schema"])))?;
        }
        write_row(out, &term, text(&response["description"]))?;
    }
    let example = curl(document, method, path, operation);
    write!(
        out,
        "</dl><h4>Example</h4><div class=\"copy-block\"><pre>{}</pre></div></div></details>",
        EscapedText(&example)
    )
}

fn write_schema(out: &mut String, schema: &Value) -> std::fmt::Result {
    // `allOf` contains a reference and then the keywords that extend it.
    let schema = schema["allOf"].get(1).unwrap_or(schema);
    let choices = list(&schema["oneOf"]).iter().chain(list(&schema["anyOf"]));
    for choice in choices {
        let extension = choice["allOf"].get(1).unwrap_or(choice);
        let name = choice["const"].as_str().or_else(|| extension["properties"]["type"]["const"].as_str());
        let name = name.map_or_else(|| schema_kind(choice), |name| format!("<code>{}</code>", EscapedText(name)));
        write!(out, "<h4>{name}</h4><p>{}</p>", Prose(text(&choice["description"])))?;
        write_schema(out, choice)?;
    }
    let meanings = list(&schema["x-enum-descriptions"]);
    if !meanings.is_empty() {
        for (value, meaning) in list(&schema["enum"]).iter().zip(meanings) {
            write!(out, "<h4><code>{}</code></h4><p>{}</p>", EscapedText(text(value)), Prose(text(meaning)))?;
        }
        return Ok(());
    }
    if fields(&schema["properties"]).next().is_none() {
        return if schema.get("enum").is_some() { write!(out, "<p>{}</p>", schema_kind(schema)) } else { Ok(()) };
    }
    out.push_str("<dl class=\"doc-rows\">");
    for (name, field) in fields(&schema["properties"]) {
        let required =
            if list(&schema["required"]).iter().any(|required_name| required_name == name) { ", required" } else { "" };
        write_row(
            out,
            &format!("<code>{}</code><small>{}{required}</small>", EscapedText(name), schema_kind(field)),
            text(&field["description"]),
        )?;
    }
    out.push_str("</dl>");
    Ok(())
}

fn write_row(out: &mut String, term: &str, description: &str) -> std::fmt::Result {
    write!(out, "<div><dt>{term}</dt><dd>{}</dd></div>", Prose(description))
}

/// Returns the kind of a schema as a word or link.
fn schema_kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMA_PREFIX)) {
        return format!("<a href=\"#{0}\">{0}</a>", EscapedText(name));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("<code>{}</code>", EscapedText(text(value))))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(schema_kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", schema_kind(&schema["items"])),
        Value::String(name) => EscapedText(name).to_string(),
        Value::Array(names) => {
            names.iter().map(|name| EscapedText(text(name)).to_string()).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

/// Resolves a reference.
pub fn resolve_reference(document: &Value, reference: &str) -> Value {
    document.pointer(reference.trim_start_matches('#')).cloned().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
