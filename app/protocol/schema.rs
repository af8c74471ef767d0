//! JSON schemas of domain types that are converted by hand, for the `OpenAPI` document. Serde's derive cannot describe
//! these conversions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::domain::access::{Permission, Permissions};
use crate::domain::ids::{AttemptNumber, JobId, PasskeyId, SessionId, TokenId, UserId, WorkerId};
use crate::domain::labels::{Labels, MAX_LABELS};
use crate::domain::time::Timestamp;
use crate::protocol::system::fingerprint::Fingerprint;

macro_rules! schemas {
    ($($name:ident: $schema:expr),+ $(,)?) => {
        $(impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })+
    };
}

schemas! {
    WorkerId: id("w_"),
    JobId: id("j_"),
    PasskeyId: id("p_"),
    UserId: id("u_"),
    TokenId: id("t_"),
    SessionId: id("s_"),
    AttemptNumber: json_schema!({
        "type": "integer", "minimum": 0, "maximum": u32::MAX,
        "description": "The number of an attempt of a job, from 1; it only increases.",
    }),
    Timestamp: json_schema!({
        "type": "string", "format": "date-time",
        "description": "A time in UTC (RFC 3339).", "examples": ["2024-01-15T10:30:00.000Z"],
    }),
    Fingerprint: json_schema!({
        "type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "The SHA-256 of a server's public key.",
    }),
    // Keys are printable and not empty; the domain limits their length.
    Labels: json_schema!({
        "type": "object", "maxProperties": MAX_LABELS,
        "propertyNames": {"pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]{1,256}$"},
        "additionalProperties": {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]{0,256}$"},
        "description": "Labels: values by key. If a job requires them, the values are globs (`*`, `?`, `[…]`).",
    }),
    Permission: json_schema!({
        "type": "string", "enum": Permission::ALL.map(Permission::as_str),
        "description": "A permission of a user or an API token.",
    }),
}

impl JsonSchema for Permissions {
    fn schema_name() -> Cow<'static, str> {
        "Permissions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let permission = generator.subschema_for::<Permission>();
        json_schema!({
            "type": "array", "items": permission,
            "description": "Permissions, including the narrower ones that broader ones include.",
        })
    }
}

/// The schema of an ID with this prefix. Input is not checked for the prefix, so the schema does not require it.
fn id(prefix: &str) -> Schema {
    json_schema!({
        "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$", "examples": [format!("{prefix}01hq3v4xkz0000000000000000")],
        "description": format!("An ID, `{prefix}…`."),
    })
}
