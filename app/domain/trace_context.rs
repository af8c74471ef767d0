//! The trace context of a job: `traceparent` of W3C Trace Context.

use std::fmt;

/// The only existing version.
const VERSION: &str = "00";
/// New traces are always sampled; otherwise a trainer's own spans would be dropped.
const SAMPLED: &str = "01";
/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const HEADER_LEN: usize = 55;

/// A trace context; its parts are hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: String,
    parent_id: String,
    flags: String,
}

impl TraceContext {
    /// Creates the root of a new trace.
    pub fn new_root(entropy: [u8; 24]) -> Self {
        let (trace, parent) = entropy.split_at(16);
        Self { trace_id: to_hex_id(trace), parent_id: to_hex_id(parent), flags: SAMPLED.to_owned() }
    }

    /// Parses the header as the standard requires: of newer versions the known part. Returns none if it is invalid.
    pub fn parse(header: &str) -> Option<Self> {
        let header = header.trim();
        let version = header.get(..2).filter(|version| is_hex(version) && *version != "ff")?;
        let (fields, rest) = header.split_at_checked(HEADER_LEN)?;
        let is_complete = if version == VERSION { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        let mut parts = fields.split('-').skip(1);
        let mut part = |length: usize| parts.next().filter(|part| part.len() == length && is_hex(part));
        let (trace, parent, flags) = (part(32)?, part(16)?, part(2)?);
        let is_nonzero = |id: &str| id.bytes().any(|digit| digit != b'0');
        let parsed = Self { trace_id: trace.to_owned(), parent_id: parent.to_owned(), flags: flags.to_owned() };
        (is_complete && is_nonzero(trace) && is_nonzero(parent)).then_some(parsed)
    }

    /// Creates a child span.
    #[must_use]
    pub fn child(&self, entropy: [u8; 8]) -> Self {
        Self { parent_id: to_hex_id(&entropy), ..self.clone() }
    }

    /// Returns the ID of the trace.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-{}-{}-{}", self.trace_id, self.parent_id, self.flags)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Never all zeros, which is invalid.
fn to_hex_id(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    let digits: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    if bytes.iter().all(|byte| *byte == 0) { format!("{}1", &digits[1..]) } else { digits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn standard_example_round_trips() {
        let trace = TraceContext::parse(VALID).expect("a trace");
        assert_eq!((trace.trace_id(), trace.to_string()), ("4bf92f3577b34da6a3ce929d0e0e4736", VALID.to_owned()));
        let child = trace.child([0x1f; 8]);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-1f1f1f1f1f1f1f1f-01");
        let newer = VALID.replacen("00", "cc", 1) + "-what-comes";
        assert_eq!(TraceContext::parse(&newer), Some(trace));
    }

    #[test]
    fn invalid_headers_are_rejected() {
        let zero_trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let zero_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        let upper = VALID.to_uppercase();
        let longer = format!("{VALID}-x");
        let newer = VALID.replacen("00", "cc", 1) + "x";
        let reserved = VALID.replacen("00", "ff", 1);
        let invalid = [
            zero_trace,
            zero_parent,
            &upper,
            &longer,
            &newer,
            &reserved,
            "",
            "00-",
            &VALID[..54],
            "ä",
            &"é".repeat(40),
        ];
        for text in invalid {
            assert_eq!(TraceContext::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn new_contexts_round_trip(entropy: [u8; 24], step: [u8; 8]) {
            let trace = TraceContext::new_root(entropy).child(step);
            prop_assert_eq!(TraceContext::parse(&trace.to_string()), Some(trace));
        }

        #[test]
        fn untrusted_headers_are_validated(text in "\\PC{0,70}|[0-9a-f-]{50,60}") {
            if let Some(trace) = TraceContext::parse(&text) {
                prop_assert!(trace.to_string().len() == 55 && text.contains(trace.trace_id()));
            }
        }
    }

    #[test]
    fn zero_entropy_gives_a_nonzero_id() {
        assert!(TraceContext::parse(&TraceContext::new_root([0; 24]).to_string()).is_some());
    }
}
