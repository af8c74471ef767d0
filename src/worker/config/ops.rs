//! What the operator said of the host's end.

use std::time::Duration;

use reqwest::Url;

use crate::cli::ops::OpsArgs;
use crate::spot::Source;

/// In usable form.
#[derive(Debug, Clone, Default)]
pub struct Ops {
    /// How long the agent stays without a job.
    pub max_idle: Option<Duration>,
    /// Who says that the host is about to be taken away.
    pub spot: Option<Source>,
    /// Where the provider's metadata service is, if not where it always is.
    pub spot_metadata_url: Option<Url>,
}

impl Ops {
    /// Checks the arguments.
    ///
    /// # Errors
    /// A sentence for whoever wrote them.
    pub fn of(args: &OpsArgs) -> Result<Self, String> {
        let max_idle = args.max_idle.as_deref().filter(|text| !text.trim().is_empty());
        Ok(Self {
            max_idle: max_idle.map(duration).transpose().map_err(|why| format!("--max-idle {why}"))?,
            spot: Source::parse(&args.spot_notice).map_err(|why| format!("--spot-notice {why}"))?,
            spot_metadata_url: args.spot_metadata_url.clone(),
        })
    }
}

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
