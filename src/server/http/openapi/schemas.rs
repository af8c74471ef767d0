//! Schemas of the wire types, and responses that many operations have, collected under their names.
//!
//! A field with a default is left out as one likes in a request, and always there in an answer; so types are looked at
//! from both sides. Where the sides differ, the one of requests is called `…Input`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::doc::SchemaOf;

/// Where they stand in the document.
const PLACE: &str = "#/components/schemas/";

/// See the module.
pub struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
    responses: Map<String, Value>,
}

impl Schemas {
    /// None yet.
    pub fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
            responses: Map::new(),
        }
    }

    /// Of something that is sent to the server.
    pub fn read(&mut self, of: SchemaOf) -> Value {
        let mut schema = of(&mut self.read).to_value();
        rename(&mut schema, &|name| format!("{name}{MARK}"));
        schema
    }

    /// Of something that the server sends.
    pub fn written(&mut self, of: SchemaOf) -> Value {
        of(&mut self.written).to_value()
    }

    /// The fields of a query string's type, with what each is and whether it must be there.
    pub fn fields(&mut self, of: SchemaOf) -> Vec<(String, Value, bool)> {
        let referred = of(&mut self.read).to_value();
        let name = referred["$ref"].as_str().and_then(|path| path.strip_prefix(PLACE));
        let whole = match name {
            Some(name) => self.read.definitions_mut().remove(name).unwrap_or_default(),
            None => referred,
        };
        let required = |field: &str| whole["required"].as_array().is_some_and(|all| all.contains(&json!(field)));
        let fields = whole["properties"].as_object().into_iter().flatten();
        let field = |(field, schema): (&String, &Value)| {
            let mut schema = not_null(schema.clone());
            rename(&mut schema, &|name| format!("{name}{MARK}"));
            (field.clone(), schema, required(field))
        };
        fields.map(field).collect()
    }

    /// Keeps a response that many operations have under this name, and refers to it.
    pub fn shared(&mut self, name: String, response: Value) -> Value {
        let reference = json!({"$ref": format!("#/components/responses/{name}")});
        self.responses.insert(name, response);
        reference
    }

    /// Puts all that were collected into the document, under names that are told apart.
    pub fn finish(mut self, document: &mut Value) {
        document["components"]["responses"] = self.responses.into();
        let written = self.written.take_definitions(true);
        let read = self.read.take_definitions(true);
        let differing = differing(&read, &written);
        let settled = |name: &str| if differing.contains(name) { format!("{name}Input") } else { name.to_owned() };
        let mut all: BTreeMap<String, Value> = written.into_iter().collect();
        for (name, mut schema) in read {
            rename(&mut schema, &|name| settled(name));
            all.entry(settled(&name)).or_insert(schema);
        }
        rename(document, &|name| name.strip_suffix(MARK).map_or_else(|| name.to_owned(), settled));
        document["components"]["schemas"] = all.into_iter().collect::<Map<_, _>>().into();
    }
}

/// Marks a name as that of the requests' side until it is known whether the sides differ.
const MARK: &str = "?";

/// The names that mean something else in a request than in an answer, by themselves or by what they refer to.
fn differing(read: &Map<String, Value>, written: &Map<String, Value>) -> BTreeSet<String> {
    let both = || read.iter().filter_map(|(name, schema)| Some((name, schema, written.get(name)?)));
    let mut differing: BTreeSet<String> =
        both().filter(|(_, read, written)| read != written).map(|(name, ..)| name.clone()).collect();
    loop {
        let more: Vec<String> = both()
            .filter(|(name, schema, _)| !differing.contains(*name) && refers(schema, &differing))
            .map(|(name, ..)| name.clone())
            .collect();
        if more.is_empty() {
            return differing;
        }
        differing.extend(more);
    }
}

fn refers(schema: &Value, names: &BTreeSet<String>) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| match value {
            Value::String(path) if key == "$ref" => path.strip_prefix(PLACE).is_some_and(|name| names.contains(name)),
            other => refers(other, names),
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, names)),
        _ => false,
    }
}

/// Changes the names in all references.
fn rename(schema: &mut Value, name: &dyn Fn(&str) -> String) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(path) if key == "$ref" => {
                        if let Some(old) = path.strip_prefix(PLACE) {
                            *path = format!("{PLACE}{}", name(old));
                        }
                    }
                    other => rename(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, name)),
        _ => {}
    }
}

/// The same without null: a query string has none, it leaves out.
fn not_null(mut schema: Value) -> Value {
    if let Some(kinds) = schema["type"].as_array().cloned() {
        let kinds: Vec<Value> = kinds.into_iter().filter(|kind| *kind != json!("null")).collect();
        schema["type"] = if let [one] = &kinds[..] { one.clone() } else { kinds.into() };
    }
    let Some(choices) = schema["anyOf"].as_array() else { return without_nulls(schema) };
    let real: Vec<Value> = choices.iter().filter(|choice| choice["type"] != "null").cloned().collect();
    if let (Some(fields), [one]) = (schema.as_object_mut(), &real[..]) {
        fields.remove("anyOf");
        fields.extend(one.as_object().cloned().unwrap_or_default());
    }
    without_nulls(schema)
}

/// What was only looked at by index leaves no trace.
fn without_nulls(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    schema
}
