//! The only module that reads the wall clock or draws random numbers; decisions elsewhere get both as parameters.

use std::fmt::Write as _;
#[cfg(not(feature = "simulation"))]
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use app::domain::time::Timestamp;

#[cfg(not(feature = "simulation"))]
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Milliseconds since the host's boot, including suspend. Leases are measured by it.
#[cfg(not(feature = "simulation"))]
pub fn boot_ms() -> u64 {
    let since = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A random number, for jitter.
#[cfg(not(feature = "simulation"))]
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
pub fn random_secret() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    fill_random(&mut bytes)?;
    Ok(encode_hex(&bytes))
}

#[cfg(not(feature = "simulation"))]
#[expect(clippy::disallowed_methods, reason = "the only source of random secrets")]
fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(|error| std::io::Error::other(error.to_string()))
}

#[cfg(feature = "simulation")]
pub use simulated::{boot_ms, now, random_u64};

#[cfg(feature = "simulation")]
use simulated::fill_random;

/// The clocks and the randomness of a simulation.
#[cfg(feature = "simulation")]
mod simulated {
    use app::domain::time::Timestamp;
    use app::simulation;

    /// Leases and retries depend on elapsed time only, so all hosts have the right time of day.
    pub fn now() -> Timestamp {
        Timestamp(i64::try_from(boot_ms()).unwrap_or(i64::MAX))
    }

    pub fn boot_ms() -> u64 {
        u64::try_from(simulation::time().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn random_u64() -> u64 {
        simulation::random_u64()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the same signature as outside a simulation")]
    pub fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
        simulation::fill_random(bytes);
        Ok(())
    }
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
