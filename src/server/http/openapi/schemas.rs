//! Schemas of the wire types, and shared responses, collected by name.
//!
//! A field with a default is optional in a request and always present in a response, so each type has a schema for both
//! directions. Where they differ, the one for requests is called `…Input`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::simplify::simplify;
use crate::http::operation::doc::SchemaOf;

/// Prefix of references to schemas.
const SCHEMA_PREFIX: &str = "#/components/schemas/";

pub struct Schemas {
    request_types: SchemaGenerator,
    response_types: SchemaGenerator,
    responses: Map<String, Value>,
}

impl Schemas {
    /// Creates an empty collection.
    pub fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            request_types: settings().for_deserialize().into_generator(),
            response_types: settings().for_serialize().into_generator(),
            responses: Map::new(),
        }
    }

    /// Returns the schema of a request type.
    pub fn request_schema(&mut self, schema_of: SchemaOf) -> Value {
        let mut schema = schema_of(&mut self.request_types).to_value();
        rename_references(&mut schema, &|name| format!("{name}{REQUEST_MARK}"));
        schema
    }

    /// Returns the schema of a response type.
    pub fn response_schema(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.response_types).to_value()
    }

    /// Returns the fields of a query type: name, schema, and whether it is required.
    pub fn query_fields(&mut self, schema_of: SchemaOf) -> Vec<(String, Value, bool)> {
        let schema = schema_of(&mut self.request_types).to_value();
        let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix(SCHEMA_PREFIX));
        let query_schema = match name {
            Some(name) => self.request_types.definitions_mut().remove(name).unwrap_or_default(),
            None => schema,
        };
        let required = |field: &str| query_schema["required"].as_array().is_some_and(|all| all.contains(&json!(field)));
        let fields = query_schema["properties"].as_object().into_iter().flatten();
        let field = |(field, schema): (&String, &Value)| {
            let mut schema = without_null(schema.clone());
            rename_references(&mut schema, &|name| format!("{name}{REQUEST_MARK}"));
            (field.clone(), schema, required(field))
        };
        fields.map(field).collect()
    }

    /// Stores a shared response under this name and returns a reference to it.
    pub fn shared_response(&mut self, name: String, response: Value) -> Value {
        let reference = json!({"$ref": format!("#/components/responses/{name}")});
        self.responses.insert(name, response);
        reference
    }

    /// Adds the collected schemas to the document under their final names.
    pub fn finish(mut self, document: &mut Value) {
        document["components"]["responses"] = self.responses.into();
        let response_schemas = self.response_types.take_definitions(true);
        let request_schemas = self.request_types.take_definitions(true);
        let differing = differing_names(&request_schemas, &response_schemas);
        let final_name = |name: &str| if differing.contains(name) { format!("{name}Input") } else { name.to_owned() };
        let mut all: BTreeMap<String, Value> = response_schemas.into_iter().collect();
        for (name, mut schema) in request_schemas {
            rename_references(&mut schema, &|name| final_name(name));
            all.entry(final_name(&name)).or_insert(schema);
        }
        rename_references(document, &|name| {
            name.strip_suffix(REQUEST_MARK).map_or_else(|| name.to_owned(), final_name)
        });
        all.values_mut().for_each(simplify);
        document["components"]["schemas"] = all.into_iter().collect::<Map<_, _>>().into();
    }
}

/// Marks a request schema's name until it is known whether both directions differ.
const REQUEST_MARK: &str = "?";

/// Returns the names whose schemas differ between request and response, directly or by what they refer to.
fn differing_names(request_schemas: &Map<String, Value>, response_schemas: &Map<String, Value>) -> BTreeSet<String> {
    let common =
        || request_schemas.iter().filter_map(|(name, schema)| Some((name, schema, response_schemas.get(name)?)));
    let mut differing: BTreeSet<String> =
        common().filter(|(_, request, response)| request != response).map(|(name, ..)| name.clone()).collect();
    loop {
        let additional: Vec<String> = common()
            .filter(|(name, schema, _)| !differing.contains(*name) && refers_to(schema, &differing))
            .map(|(name, ..)| name.clone())
            .collect();
        if additional.is_empty() {
            return differing;
        }
        differing.extend(additional);
    }
}

fn refers_to(schema: &Value, names: &BTreeSet<String>) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| match value {
            Value::String(path) if key == "$ref" => {
                path.strip_prefix(SCHEMA_PREFIX).is_some_and(|name| names.contains(name))
            }
            other => refers_to(other, names),
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, names)),
        _ => false,
    }
}

/// Renames all references.
fn rename_references(schema: &mut Value, name: &dyn Fn(&str) -> String) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(path) if key == "$ref" => {
                        if let Some(old) = path.strip_prefix(SCHEMA_PREFIX) {
                            *path = format!("{SCHEMA_PREFIX}{}", name(old));
                        }
                    }
                    other => rename_references(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_references(item, name)),
        _ => {}
    }
}

/// Removes null from a schema: a query string omits the parameter instead.
fn without_null(mut schema: Value) -> Value {
    if let Some(kinds) = schema["type"].as_array().cloned() {
        let kinds: Vec<Value> = kinds.into_iter().filter(|kind| *kind != json!("null")).collect();
        schema["type"] = if let [single] = &kinds[..] { single.clone() } else { kinds.into() };
    }
    let Some(choices) = schema["anyOf"].as_array() else { return without_nulls(schema) };
    let non_null_choices: Vec<Value> = choices.iter().filter(|choice| choice["type"] != "null").cloned().collect();
    if let (Some(fields), [single]) = (schema.as_object_mut(), &non_null_choices[..]) {
        fields.remove("anyOf");
        fields.extend(single.as_object().cloned().unwrap_or_default());
    }
    without_nulls(schema)
}

/// Removes nulls that indexing has inserted.
fn without_nulls(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    schema
}
