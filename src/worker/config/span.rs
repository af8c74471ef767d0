//! Spans of time as people write them.

use std::time::Duration;

/// Reads `600`, `90s`, `10m`, `2h`.
///
/// # Errors
/// With what can be written.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    digits
        .parse::<u64>()
        .ok()
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text:?} is no span of time: write 600 (seconds), 90s, 10m or 2h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read() {
        let read = |text: &str| duration(text).ok().map(|span| span.as_secs());
        let cases =
            [("600", 600), ("90s", 90), ("10m", 600), (" 2h ", 7_200)].map(|(text, seconds)| (text, Some(seconds)));
        let wrong =
            ["", "0", "m", "10x", "-1", "1.5h", "99999999999999999999", "9999999999999999h"].map(|text| (text, None));
        for (text, seconds) in cases.into_iter().chain(wrong) {
            assert_eq!(read(text), seconds, "{text:?}");
        }
    }
}
