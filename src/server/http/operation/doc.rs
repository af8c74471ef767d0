//! The documentation of a route that the handler's types ([`super::signature`]) do not contain.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Creates the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Returns the schema of `T`.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

#[derive(Debug, Clone, Copy)]
pub struct OperationDoc {
    /// The operation id, used by client generators.
    pub id: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Further details.
    pub description: &'static str,
    /// The body, if the handler takes one that is not JSON.
    pub body: Option<ContentDoc>,
    /// Request headers that the handler reads.
    pub headers: &'static [HeaderDoc],
    /// Responses that the handler's type does not contain.
    pub responses: &'static [ResponseDoc],
    /// Its specific problems, by code.
    pub problems: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
pub struct HeaderDoc {
    pub name: &'static str,
    pub description: &'static str,
}

/// A response that is not a problem.
#[derive(Debug, Clone, Copy)]
pub struct ResponseDoc {
    pub status: u16,
    /// When it is returned, or what it contains.
    pub description: &'static str,
    pub content: ContentDoc,
    pub headers: &'static [HeaderDoc],
}

/// The content of a body.
#[derive(Debug, Clone, Copy)]
pub enum ContentDoc {
    Empty,
    Json(SchemaOf),
    /// JSON lines.
    Lines(SchemaOf),
    Events {
        /// The values of `event:`; empty where events have no names.
        names: &'static [&'static str],
        /// The schema of `data:`.
        data: SchemaOf,
    },
    /// Bytes of one of these media types.
    Bytes(&'static [&'static str]),
    /// A form: its fields with their descriptions.
    Form(&'static [(&'static str, &'static str)]),
}

impl OperationDoc {
    /// Creates a documentation without details.
    pub const fn new(id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, description: "", body: None, headers: &[], responses: &[], problems: &[] }
    }
}

impl ResponseDoc {
    /// Creates a JSON response of this type.
    pub const fn json<T: JsonSchema>(status: u16, description: &'static str) -> Self {
        Self::new(status, description, ContentDoc::Json(schema_of::<T>))
    }

    /// Creates a stream of events with these names and data of this type.
    pub const fn events<T: JsonSchema>(names: &'static [&'static str], description: &'static str) -> Self {
        Self::new(200, description, ContentDoc::Events { names, data: schema_of::<T> })
    }

    /// Creates a response.
    pub const fn new(status: u16, description: &'static str, content: ContentDoc) -> Self {
        Self { status, description, content, headers: &[] }
    }
}

/// Chooses the language.
pub const ACCEPT_LANGUAGE_HEADER: HeaderDoc = HeaderDoc {
    name: "Accept-Language",
    description: "The language of sentences in the response; English by default. Codes and values are the same in all languages.",
};
/// Makes a submit idempotent.
pub const IDEMPOTENCY_KEY_HEADER: HeaderDoc = HeaderDoc {
    name: "Idempotency-Key",
    description: "Any text. The same key with the same body returns the result of the first request, for 24 hours; with another body it is rejected.",
};
/// Resumes a stream.
pub const LAST_EVENT_ID_HEADER: HeaderDoc = HeaderDoc {
    name: "Last-Event-ID",
    description: "The `id` of the last received event; the stream resumes after it.",
};
/// Returns 304 if nothing has changed.
pub const IF_NONE_MATCH_HEADER: HeaderDoc = HeaderDoc {
    name: "If-None-Match",
    description: "An earlier `ETag`: if it is still current, the response is 304 without a body.",
};
/// Prevents lost updates.
pub const IF_MATCH_HEADER: HeaderDoc = HeaderDoc {
    name: "If-Match",
    description: "The `ETag` of the state to change: if it was changed since, the response is 412 and nothing is changed. Only edits count, not heartbeats or progress.",
};
/// Prevents overwriting an existing resource.
pub const IF_NEW_HEADER: HeaderDoc = HeaderDoc {
    name: "If-None-Match",
    description: "`*`: if it exists already, the response is 412 and nothing is changed.",
};
/// Links to the next page.
pub const LINK_HEADER: HeaderDoc =
    HeaderDoc { name: "Link", description: "The next page (`rel=\"next\"`), if there is one." };
/// The URL of the created resource.
pub const LOCATION_HEADER: HeaderDoc = HeaderDoc { name: "Location", description: "The next URL." };
/// The tag of the response's state.
pub const ETAG_HEADER: HeaderDoc = HeaderDoc { name: "ETag", description: "The strong tag of this state." };
/// The caller's position in a trace.
pub const TRACEPARENT_HEADER: HeaderDoc = HeaderDoc {
    name: "traceparent",
    description: "W3C trace that the job belongs to; without one it starts a new trace.",
};
/// The trace of the created resource.
pub const TRACERESPONSE_HEADER: HeaderDoc =
    HeaderDoc { name: "traceresponse", description: "The job's position in its trace (W3C draft)." };
