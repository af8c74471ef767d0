//! Parses durations.

use std::time::Duration;

/// Parses `600`, `90s`, `10m`, `2h`.
///
/// # Errors
/// The valid formats.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
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
        .ok_or_else(|| format!("{text:?} is not a duration: use 600 (seconds), 90s, 10m or 2h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let read = |text: &str| parse_duration(text).ok().map(|span| span.as_secs());
        let cases =
            [("600", 600), ("90s", 90), ("10m", 600), (" 2h ", 7_200)].map(|(text, seconds)| (text, Some(seconds)));
        let wrong =
            ["", "0", "m", "10x", "-1", "1.5h", "99999999999999999999", "9999999999999999h"].map(|text| (text, None));
        for (text, seconds) in cases.into_iter().chain(wrong) {
            assert_eq!(read(text), seconds, "{text:?}");
        }
    }
}
