//! How programs write a secret: unchanged, escaped, in base64 or in hexadecimal.

use std::collections::BTreeSet;

use app::domain::secret::MIN_VALUE_BYTES;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::visible_text::VisibleText;
use crate::worker::clock;

/// Characters that are not escaped in a URL: by the RFC, by `quote` of Python, by `encodeURIComponent` of JavaScript,
/// and in an HTML form.
const UNRESERVED: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!'()*", b"-._*"];

/// All encodings, without invisible characters.
pub fn all_encodings(value: &str) -> BTreeSet<Vec<u8>> {
    // Masking a shorter value would hide half of a log.
    if value.len() < MIN_VALUE_BYTES {
        return BTreeSet::new();
    }
    // Logs are read line by line.
    let lines = value.lines().map(|line| line.trim().to_owned());
    let spellings = lines
        .chain([value.to_owned()])
        .chain(json_encodings(value))
        .chain(url_encodings(value))
        .chain(hex_encodings(value));
    spellings.chain(base64_encodings(value)).filter_map(|spelling| normalize(&spelling)).collect()
}

/// A line of a long value may be too short, also after removing control characters.
fn normalize(spelling: &str) -> Option<Vec<u8>> {
    let visible = VisibleText::from_raw(spelling.as_bytes()).text;
    (spelling.len() >= MIN_VALUE_BYTES && visible.len() >= MIN_VALUE_BYTES / 2).then_some(visible)
}

/// In JSON, with all characters unescaped, and in ASCII only.
fn json_encodings(value: &str) -> [String; 2] {
    let json = serde_json::to_string(value).unwrap_or_default();
    let text = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    let unit = |unit: &u16| format!("\\u{unit:04x}");
    let ascii = text.chars().map(|c| match c {
        _ if c.is_ascii() => c.to_string(),
        _ => c.encode_utf16(&mut [0; 2]).iter().map(unit).collect(),
    });
    let ascii = ascii.collect();
    [text.to_owned(), ascii]
}

/// In a URL or a form.
fn url_encodings(value: &str) -> impl Iterator<Item = String> {
    let variants = UNRESERVED.into_iter().flat_map(|plain| [(plain, true), (plain, false)]);
    variants.flat_map(move |(plain, upper)| {
        let escaped: String = value.bytes().map(|byte| percent_encode(byte, plain, upper)).collect();
        [escaped.replace("%20", "+"), escaped]
    })
}

fn percent_encode(byte: u8, plain: &[u8], upper: bool) -> String {
    match byte {
        _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => char::from(byte).to_string(),
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    }
}

fn hex_encodings(value: &str) -> [String; 2] {
    let lower = clock::encode_hex(value.as_bytes());
    [lower.to_ascii_uppercase(), lower]
}

/// In both alphabets, and at offsets of zero, one and two bytes (`user:secret` in a header). Characters that also
/// contain bits of adjacent bytes are unknown, so up to six bits at each end are excluded.
fn base64_encodings(value: &str) -> impl Iterator<Item = String> {
    let complete = [STANDARD_NO_PAD.encode(value), URL_SAFE_NO_PAD.encode(value)];
    let inner = (0..3_usize).flat_map(move |before| {
        let bytes = [&[0; 3][..before], value.as_bytes()].concat();
        let known = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)]
            .map(|text| text.get(known.clone()).unwrap_or_default().to_owned())
    });
    complete.into_iter().chain(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_usual_encodings_are_generated() {
        let spellings = all_encodings("p@ss \"wörd\"/?");
        for expected in [
            "p@ss \"wörd\"/?",
            r#"p@ss \"wörd\"/?"#,
            r#"p@ss \"w\u00f6rd\"/?"#,
            "p%40ss%20%22w%C3%B6rd%22%2F%3F",
            "p%40ss%20%22w%c3%b6rd%22%2f%3f",
            "p%40ss+%22w%C3%B6rd%22%2F%3F",
            "p%40ss%20%22w%C3%B6rd%22/%3F",
            "70407373202277c3b67264222f3f",
            "70407373202277C3B67264222F3F",
        ] {
            assert!(spellings.contains(expected.as_bytes()), "{expected}");
        }
    }

    #[test]
    fn short_values_have_no_encodings() {
        assert!(all_encodings("short").is_empty());
        assert!(
            all_encodings("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}")
                .iter()
                .all(|encoding| encoding.len() >= MIN_VALUE_BYTES / 2)
        );
    }
}
