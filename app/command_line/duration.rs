//! Durations that users type.

use std::time::Duration;

/// Parses `600` (seconds), `90s`, `10m`, `2h`, `1d`, `2h 30m`.
///
/// # Errors
/// The valid formats.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let parsed = match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    parsed
        .filter(|duration| *duration >= Duration::from_secs(1))
        .ok_or_else(|| format!("{text:?} is not a duration: use 600 (seconds), 90s, 10m, 2h or 1d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let read = |text: &str| parse_duration(text).ok().map(|duration| duration.as_secs());
        let valid = [
            ("600", 600),
            ("90s", 90),
            ("10m", 600),
            (" 2h ", 7_200),
            ("1 h", 3_600),
            ("1d", 86_400),
            ("1.5h", 5_400),
            ("2h30m", 9_000),
            ("1 day 2 hours", 93_600),
        ]
        .map(|(text, seconds)| (text, Some(seconds)));
        let invalid = ["", "0", "0m", "m", "10x", "-1", "-1h", "99999999999999999999", "9999999999999999h", "x"]
            .map(|text| (text, None));
        for (text, seconds) in valid.into_iter().chain(invalid) {
            assert_eq!(read(text), seconds, "{text:?}");
        }
    }
}
