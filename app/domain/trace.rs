//! Where a job stands in a trace: `traceparent` of the W3C's Trace Context.

use std::fmt;

/// The only version there is so far.
const VERSION: &str = "00";
/// What is begun here is to be recorded by whoever records: a trainer's own spans would be dropped otherwise.
const SAMPLED: &str = "01";
/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const LENGTH: usize = 55;

/// See the module. The parts are hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    id: String,
    parent: String,
    flags: String,
}

impl Trace {
    /// One of our own.
    pub fn begun(entropy: [u8; 24]) -> Self {
        let (trace, parent) = entropy.split_at(16);
        Self { id: id(trace), parent: id(parent), flags: SAMPLED.to_owned() }
    }

    /// Reads the header, as the standard wants it read: what is newer counts as far as it is known. None for what is
    /// no trace.
    pub fn parse(header: &str) -> Option<Self> {
        let header = header.trim();
        let version = header.get(..2).filter(|version| is_hex(version) && *version != "ff")?;
        let (known, rest) = header.split_at_checked(LENGTH)?;
        let whole = if version == VERSION { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        let mut parts = known.split('-').skip(1);
        let mut part = |length: usize| parts.next().filter(|part| part.len() == length && is_hex(part));
        let (trace, parent, flags) = (part(32)?, part(16)?, part(2)?);
        let some = |id: &str| id.bytes().any(|digit| digit != b'0');
        let told = Self { id: trace.to_owned(), parent: parent.to_owned(), flags: flags.to_owned() };
        (whole && some(trace) && some(parent)).then_some(told)
    }

    /// What follows from it, as a step of its own.
    #[must_use]
    pub fn child(&self, entropy: [u8; 8]) -> Self {
        Self { parent: id(&entropy), ..self.clone() }
    }

    /// The whole trace's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-{}-{}-{}", self.id, self.parent, self.flags)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Never all zeros, which means none.
fn id(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    let digits: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    if bytes.iter().all(|byte| *byte == 0) { format!("{}1", &digits[1..]) } else { digits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_standards_example_is_read_and_written() {
        let trace = Trace::parse(GOOD).expect("a trace");
        assert_eq!((trace.id(), trace.to_string()), ("4bf92f3577b34da6a3ce929d0e0e4736", GOOD.to_owned()));
        let child = trace.child([0x1f; 8]);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-1f1f1f1f1f1f1f1f-01");
        let newer = GOOD.replacen("00", "cc", 1) + "-what-comes";
        assert_eq!(Trace::parse(&newer), Some(trace));
    }

    #[test]
    fn what_is_broken_is_none() {
        let zero_trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let zero_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        let upper = GOOD.to_uppercase();
        let longer = format!("{GOOD}-x");
        let newer = GOOD.replacen("00", "cc", 1) + "x";
        let reserved = GOOD.replacen("00", "ff", 1);
        let wrong =
            [zero_trace, zero_parent, &upper, &longer, &newer, &reserved, "", "00-", &GOOD[..54], "ä", &"é".repeat(40)];
        for text in wrong {
            assert_eq!(Trace::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_begun_can_be_read(entropy: [u8; 24], step: [u8; 8]) {
            let trace = Trace::begun(entropy).child(step);
            prop_assert_eq!(Trace::parse(&trace.to_string()), Some(trace));
        }

        #[test]
        fn nothing_a_stranger_sends_is_passed_on_unless_it_is_plain(text in "\\PC{0,70}|[0-9a-f-]{50,60}") {
            if let Some(trace) = Trace::parse(&text) {
                prop_assert!(trace.to_string().len() == 55 && text.contains(trace.id()));
            }
        }
    }

    #[test]
    fn no_entropy_is_no_zero() {
        assert!(Trace::parse(&Trace::begun([0; 24]).to_string()).is_some());
    }
}
