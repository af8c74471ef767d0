//! What a route says of itself, beside its handler: what the handler's types ([`super::signature`]) cannot say.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`, when it is asked for.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// The operation's name, for programs that are made from the description.
    pub id: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// What else is worth knowing.
    pub detail: &'static str,
    /// The body, if the handler takes one that is not JSON.
    pub body: Option<Content>,
    /// Headers that it looks at.
    pub headers: &'static [Header],
    /// Answers that the handler's type does not say.
    pub answers: &'static [Answer],
    /// The problems of its own, by their stable names.
    pub problems: &'static [&'static str],
}

/// A header of a request.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// An answer that is no problem.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// When it comes, or what it is.
    pub about: &'static str,
    /// Its body.
    pub content: Content,
    /// Its headers, with what they say.
    pub headers: &'static [Header],
}

/// What a body is.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// There is none.
    Nothing,
    /// JSON.
    Json(SchemaOf),
    /// A line of JSON for each.
    Lines(SchemaOf),
    /// Server-Sent Events.
    Events {
        /// The names in `event:`; none where events have no names.
        names: &'static [&'static str],
        /// The JSON in `data:`.
        data: SchemaOf,
    },
    /// Bytes of one of these media types.
    Bytes(&'static [&'static str]),
    /// A form, by its fields with what they are.
    Form(&'static [(&'static str, &'static str)]),
}

impl Doc {
    /// A description without particulars.
    pub const fn of(id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, detail: "", body: None, headers: &[], answers: &[], problems: &[] }
    }
}

impl Answer {
    /// JSON of this type.
    pub const fn json<T: JsonSchema>(status: u16, about: &'static str) -> Self {
        Self::with(status, about, Content::Json(schema_of::<T>))
    }

    /// Events with these names, and data of this type.
    pub const fn events<T: JsonSchema>(names: &'static [&'static str], about: &'static str) -> Self {
        Self::with(200, about, Content::Events { names, data: schema_of::<T> })
    }

    /// A body.
    pub const fn with(status: u16, about: &'static str, content: Content) -> Self {
        Self { status, about, content, headers: &[] }
    }
}

/// Makes a submit safe to repeat.
pub const IDEMPOTENCY_KEY: Header = Header {
    name: "Idempotency-Key",
    about: "Any text of the caller's. The same key with the same body is answered with what came of the first, for 24 hours; with another body it is refused.",
};
/// Resumes a stream.
pub const LAST_EVENT_ID: Header =
    Header { name: "Last-Event-ID", about: "The `id` of the last event that was seen; the stream goes on after it." };
/// Asks whether anything is new.
pub const IF_NONE_MATCH: Header = Header {
    name: "If-None-Match",
    about: "An `ETag` from before: if it is still the same, the answer is 304 without a body.",
};
/// Guards an edit.
pub const IF_MATCH: Header = Header {
    name: "If-Match",
    about: "The `ETag` of what is meant to be changed: if somebody has changed it since, nothing happens and the answer is 412. Only what people set counts, no heartbeat and no progress.",
};
/// Guards what is there already.
pub const IF_NEW: Header =
    Header { name: "If-None-Match", about: "`*`: if there is one already, nothing happens and the answer is 412." };
/// Leads to the next page.
pub const LINK: Header = Header { name: "Link", about: "The next page (`rel=\"next\"`), if there is one." };
/// Where to look or go.
pub const LOCATION: Header = Header { name: "Location", about: "Where to go on." };
/// The name of what was answered.
pub const ETAG: Header = Header { name: "ETag", about: "The strong name of exactly this state." };
/// Where the caller stands in a trace.
pub const TRACEPARENT: Header =
    Header { name: "traceparent", about: "A trace (W3C) that the job is to belong to; without one it begins its own." };
/// Where what was made stands in a trace.
pub const TRACERESPONSE: Header =
    Header { name: "traceresponse", about: "Where the job stands in its trace, as the W3C's draft writes it." };
