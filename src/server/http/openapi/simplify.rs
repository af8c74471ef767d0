//! Simplifies schemas for client generators: most support `enum`, but not a `oneOf` of constants, ignore keywords
//! beside a `$ref`, and know no boolean schemas.

use serde_json::{Map, Value, json};

/// Simplifies a schema and its subschemas.
pub fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            merge_choices(fields);
            wrap_reference(fields);
            allow_any_item(fields);
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Merges a `oneOf` of constants into an `enum`; the meanings go into the description.
fn merge_choices(fields: &mut Map<String, Value>) {
    let Some(choices) = fields.get("oneOf").and_then(Value::as_array) else { return };
    let (mut values, mut meanings) = (Vec::new(), Vec::new());
    for choice in choices {
        let constant = choice.get("const").map(std::slice::from_ref);
        let Some(choice_values) = constant.or_else(|| choice["enum"].as_array().map(Vec::as_slice)) else { return };
        values.extend(choice_values.iter().cloned());
        meanings.extend(choice_values.iter().map(|_| choice["description"].as_str().unwrap_or_default().to_owned()));
    }
    fields.remove("oneOf");
    fields.insert("type".to_owned(), "string".into());
    fields.insert("enum".to_owned(), values.into());
    fields.insert("x-enum-descriptions".to_owned(), meanings.into());
}

/// Wraps a reference with additional keywords into an `allOf`.
fn wrap_reference(fields: &mut Map<String, Value>) {
    if !(fields.contains_key("$ref") && fields.contains_key("properties")) {
        return;
    }
    let extension: Map<String, Value> =
        ["type", "properties", "required"].iter().filter_map(|key| fields.remove_entry(*key)).collect();
    let reference = fields.remove("$ref");
    fields.insert("allOf".to_owned(), json!([{"$ref": reference}, extension]));
}

/// Items of any type are an empty schema: generators expect an object, not `true`.
fn allow_any_item(fields: &mut Map<String, Value>) {
    if let Some(items @ Value::Bool(true)) = fields.get_mut("items") {
        *items = json!({});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(mut schema: Value) -> Value {
        simplify(&mut schema);
        schema
    }

    #[test]
    fn constants_become_one_enum_with_descriptions() {
        let schema = json!({"description": "Where.", "oneOf": [
            {"const": "auto", "description": "Anywhere.", "type": "string"},
            {"enum": ["a", "b"], "type": "string"},
        ]});
        let expected = json!({
            "description": "Where.", "type": "string", "enum": ["auto", "a", "b"],
            "x-enum-descriptions": ["Anywhere.", "", ""],
        });
        assert_eq!(simplified(schema), expected);
        let either = json!({"oneOf": [{"type": "integer"}, {"const": "all", "type": "string"}]});
        assert_eq!(simplified(either.clone()), either, "a choice with other types stays");
    }

    #[test]
    fn items_of_any_type_are_an_object() {
        let schema = |items: Value| json!({"properties": {"values": {"type": "array", "items": items}}});
        assert_eq!(simplified(schema(true.into())), schema(json!({})));
        assert_eq!(simplified(schema(json!({"type": "string"}))), schema(json!({"type": "string"})));
    }

    #[test]
    fn keywords_beside_a_reference_are_kept() {
        let tagged = json!({"oneOf": [{"$ref": "#/x", "description": "Run.", "type": "object",
            "properties": {"type": {"const": "run"}}, "required": ["type"]}]});
        let expected = json!({"oneOf": [{"description": "Run.", "allOf": [
            {"$ref": "#/x"}, {"type": "object", "properties": {"type": {"const": "run"}}, "required": ["type"]},
        ]}]});
        assert_eq!(simplified(tagged), expected);
        let named = json!({"properties": {"x": {"$ref": "#/x", "description": "Of a field."}}});
        assert_eq!(simplified(named.clone()), named);
    }
}
