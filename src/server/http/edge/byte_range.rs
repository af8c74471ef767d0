//! Which bytes of a file a request asks for (RFC 9110, section 14): one range, or all of it.

use std::ops::Range;

use axum::http::{HeaderMap, header};

use super::request_headers::header_text;

/// The requested part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedRange {
    /// All of it; also for several ranges, and for a range that cannot be parsed.
    All,
    /// Some of its bytes, at least one.
    Bytes(Range<u64>),
    /// No byte of the file is in the range.
    Unsatisfiable,
}

impl RequestedRange {
    /// Reads the range of a request for a file with this tag and size. A part of another version of the file (`If-Range`)
    /// is of no use, so the whole file is returned; a date is never the tag.
    pub fn from_headers(headers: &HeaderMap, etag: &str, size: u64) -> Self {
        let is_current = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == etag.as_bytes());
        let range = header_text(headers, header::RANGE.as_str()).filter(|_| is_current);
        range.map_or(Self::All, |range| Self::parse(range, size))
    }

    /// Parses the value of `Range`.
    pub fn parse(range: &str, size: u64) -> Self {
        let bounds = range.split_once('=').filter(|(unit, _)| unit.trim().eq_ignore_ascii_case("bytes"));
        let bounds = bounds.and_then(|(_, bounds)| bounds.trim().split_once('-'));
        match bounds.map(|(first, last)| (Bound::parse(first), Bound::parse(last))) {
            Some((Bound::Byte(first), Bound::None)) => Self::satisfiable(first..size),
            Some((Bound::Byte(first), Bound::Byte(last))) if first <= last => {
                Self::satisfiable(first..size.min(last.saturating_add(1)))
            }
            // No range describes the end of an empty file.
            Some((Bound::None, Bound::Byte(length))) if length > 0 && size == 0 => Self::All,
            Some((Bound::None, Bound::Byte(length))) => Self::satisfiable(size.saturating_sub(length)..size),
            _ => Self::All,
        }
    }

    fn satisfiable(range: Range<u64>) -> Self {
        if range.is_empty() { Self::Unsatisfiable } else { Self::Bytes(range) }
    }
}

enum Bound {
    None,
    Byte(u64),
    Invalid,
}

impl Bound {
    fn parse(text: &str) -> Self {
        match text {
            "" => Self::None,
            // What does not fit is after the end of any file.
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => Self::Byte(text.parse().unwrap_or(u64::MAX)),
            _ => Self::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let rows = [
            ("bytes=0-", RequestedRange::Bytes(0..10)),
            ("bytes=4-", RequestedRange::Bytes(4..10)),
            ("bytes=4-4", RequestedRange::Bytes(4..5)),
            ("bytes=4-99", RequestedRange::Bytes(4..10)),
            ("bytes=-4", RequestedRange::Bytes(6..10)),
            ("bytes=-99", RequestedRange::Bytes(0..10)),
            ("Bytes = 4-5 ", RequestedRange::Bytes(4..6)),
            ("bytes=0-18446744073709551615", RequestedRange::Bytes(0..10)),
            ("bytes=0-99999999999999999999", RequestedRange::Bytes(0..10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=10-12", RequestedRange::Unsatisfiable),
            ("bytes=99999999999999999999-", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=5-4", RequestedRange::All),
            ("bytes=+1-2", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("bytes=-", RequestedRange::All),
            ("bytes=--1", RequestedRange::All),
            ("lines=0-1", RequestedRange::All),
            ("bytes=", RequestedRange::All),
            ("4-5", RequestedRange::All),
            ("", RequestedRange::All),
        ];
        for (range, expected) in rows {
            assert_eq!(RequestedRange::parse(range, 10), expected, "{range}");
        }
        assert_eq!(RequestedRange::parse("bytes=0-", 0), RequestedRange::Unsatisfiable);
        assert_eq!(RequestedRange::parse("bytes=-1", 0), RequestedRange::All);
    }

    #[test]
    fn part_of_another_version_is_not_returned() {
        let requested = |if_range: &str| {
            let headers = [(header::RANGE, "bytes=2-"), (header::IF_RANGE, if_range)];
            let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
            let headers = headers.map(|(name, value)| (name, value.parse().expect("a header"))).collect();
            RequestedRange::from_headers(&headers, "\"a\"", 5)
        };
        assert_eq!(requested("\"a\""), RequestedRange::Bytes(2..5));
        assert_eq!(requested(""), RequestedRange::Bytes(2..5));
        for other in ["\"b\"", "W/\"a\"", "a", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(requested(other), RequestedRange::All, "{other}");
        }
        assert_eq!(RequestedRange::from_headers(&HeaderMap::new(), "\"a\"", 5), RequestedRange::All);
    }

    proptest! {
        #[test]
        fn ranges_are_within_the_file(text in "(bytes=)?[0-9]{0,3}-?[0-9]{0,3}|\\PC*", size in 0_u64..200) {
            if let RequestedRange::Bytes(range) = RequestedRange::parse(&text, size) {
                prop_assert!(range.start < range.end && range.end <= size, "{text:?} {range:?}");
            }
        }

        #[test]
        fn all_parts_are_the_whole(size in 1_u64..200, cut in 0_u64..200) {
            let cut = cut % size;
            let parse = |range: String| match RequestedRange::parse(&range, size) {
                RequestedRange::Bytes(range) => range,
                other => panic!("{range}: {other:?}"),
            };
            let (head, tail) = (parse(format!("bytes=0-{cut}")), parse(format!("bytes={cut}-")));
            prop_assert_eq!((head.start, head.end - 1, tail.clone()), (0, tail.start, cut..size));
            prop_assert_eq!(parse(format!("bytes=-{}", size - cut)), tail);
        }
    }
}
