//! How programs write a secret: as it is, escaped, in base64 or in hexadecimal.

use std::collections::BTreeSet;

use app::domain::secret::SHORTEST;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::visible::Visible;
use crate::clock;

/// What a part of an address leaves as it is: by the RFC, by `quote` of Python, by `encodeURIComponent` of JavaScript, and in
/// an HTML form.
const UNRESERVED: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!'()*", b"-._*"];

/// All spellings, without what a terminal does not show.
pub fn all(value: &str) -> BTreeSet<Vec<u8>> {
    // What is shorter would blot out half of a log.
    if value.len() < SHORTEST {
        return BTreeSet::new();
    }
    // Logs are read by the line.
    let lines = value.lines().map(|line| line.trim().to_owned());
    let spellings = lines.chain([value.to_owned()]).chain(json(value)).chain(address(value)).chain(hex(value));
    spellings.chain(base64(value)).filter_map(|spelling| usable(&spelling)).collect()
}

/// Of a value that is long enough, a line or what is left without control characters may not be.
fn usable(spelling: &str) -> Option<Vec<u8>> {
    let visible = Visible::of(spelling.as_bytes()).text;
    (spelling.len() >= SHORTEST && visible.len() >= SHORTEST / 2).then_some(visible)
}

/// In JSON, as it is written with all characters, and with ASCII alone.
fn json(value: &str) -> [String; 2] {
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

/// In an address or a form.
fn address(value: &str) -> impl Iterator<Item = String> {
    let kept = UNRESERVED.into_iter().flat_map(|plain| [(plain, true), (plain, false)]);
    kept.flat_map(move |(plain, upper)| {
        let escaped: String = value.bytes().map(|byte| escaped(byte, plain, upper)).collect();
        [escaped.replace("%20", "+"), escaped]
    })
}

fn escaped(byte: u8, plain: &[u8], upper: bool) -> String {
    match byte {
        _ if byte.is_ascii_alphanumeric() || plain.contains(&byte) => char::from(byte).to_string(),
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    }
}

fn hex(value: &str) -> [String; 2] {
    let lower = clock::hex(value.as_bytes());
    [lower.to_ascii_uppercase(), lower]
}

/// In both alphabets, and as it comes out behind nothing, one byte or two (`user:secret` in a header). Characters that hold
/// bits of its neighbours too are unknown, so up to six bits at each end are not part of it.
fn base64(value: &str) -> impl Iterator<Item = String> {
    let whole = [STANDARD_NO_PAD.encode(value), URL_SAFE_NO_PAD.encode(value)];
    let within = (0..3_usize).flat_map(move |before| {
        let bytes = [&[0; 3][..before], value.as_bytes()].concat();
        let known = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)]
            .map(|text| text.get(known.clone()).unwrap_or_default().to_owned())
    });
    whole.into_iter().chain(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_programs_write_it() {
        let spellings = all("p@ss \"wörd\"/?");
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
    fn what_is_short_is_no_secret() {
        assert!(all("short").is_empty());
        assert!(all("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}").iter().all(|one| one.len() >= SHORTEST / 2));
    }
}
