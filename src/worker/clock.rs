//! The only module that reads the wall clock or draws random numbers; decisions elsewhere get both as parameters.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use app::domain::time::Timestamp;

#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Milliseconds since the host's boot, including suspend. Leases are measured by it.
pub fn boot_ms() -> u64 {
    let since = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A random number, for jitter.
pub fn random_u64() -> u64 {
    // Without randomness only jitter is lost.
    getrandom::u64().unwrap_or_default()
}

pub fn random_fraction() -> f64 {
    f64::from(u16::try_from(random_u64() & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}

/// A random secret of 32 hex digits.
///
/// # Errors
/// If the system has no randomness; then no secret can be created.
#[expect(clippy::disallowed_methods, reason = "the only source of random secrets")]
pub fn random_secret() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(encode_hex(&bytes))
}

/// Parses an HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_ascii_whitespace().skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    Timestamp::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z"))
}

pub fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_parsed() {
        let parse = |text: &str| parse_http_date(text).map(|time| time.to_string());
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT").as_deref(), Some("1994-11-06T08:49:37.000Z"));
        for invalid in ["", "yesterday", "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 36 Nov 1994 08:49:37 GMT"] {
            assert_eq!(parse(invalid), None, "{invalid:?}");
        }
    }
}
