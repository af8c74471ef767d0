//! Limits of what is read from others: the orchestrator, or a server in its place, and the trainer.

use std::time::Duration;

use app::domain::disk_watermark::DiskFloor;
use clap::{Args, Parser};
use serde::{Deserialize, Serialize};

use app::command_line::duration::parse_duration;

/// Heading in `--help`; a test finds the flags by it.
pub const HELP_HEADING: &str = "Input limits";
/// Upper bound of each size, in bytes.
const MAX_VALUE: u64 = 1 << 30;
/// An HTTP server needs at least this much.
const MIN_HEAD_BYTES: u64 = 8 << 10;

/// Limits of what is read from the orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
#[command(next_help_heading = HELP_HEADING)]
pub struct InputLimits {
    /// Max size of a JSON response
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_ANSWER", default_value = "8MiB", value_parser = parse_size)]
    pub max_answer: usize,
    /// Max size of an error's text; of a larger one only the status is used
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_ERROR", default_value = "16KiB", value_parser = parse_size)]
    pub max_error: usize,
    /// Max size of an event of the stream
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_EVENT", default_value = "1MiB", value_parser = parse_size)]
    pub max_event: usize,
    /// Max size of a configuration with its files, as it is sent: 8 MiB of text as JSON, where a character can take six
    /// bytes
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_BUNDLE", default_value = "64MiB", value_parser = parse_size)]
    pub max_bundle: usize,
    #[command(flatten)]
    pub webhook: WebhookLimits,
}

/// Limits of what is read from a trainer: the port of its webhook is open to every user of the host. Part of
/// `spec.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(next_help_heading = HELP_HEADING)]
#[serde(default)]
pub struct WebhookLimits {
    /// Max concurrent connections to a job's webhook; the oldest one without its key is closed for a new one
    #[arg(long = "webhook-connections", value_name = "N", env = "SIMPLETUNER_WEBHOOK_CONNECTIONS", default_value = "64", value_parser = parse_count)]
    pub connections: usize,
    /// Max size of the head of a request to the webhook
    #[arg(long = "webhook-head", value_name = "SIZE", env = "SIMPLETUNER_WEBHOOK_HEAD", default_value = "16KiB", value_parser = parse_head_size)]
    pub head: usize,
    /// Max size of the body of a request to the webhook, one at a time; validation images are sent inside events
    #[arg(long = "webhook-body", value_name = "SIZE", env = "SIMPLETUNER_WEBHOOK_BODY", default_value = "64MiB", value_parser = parse_size)]
    pub body: usize,
    /// Max values in one request to the webhook: each takes many times the memory of its text
    #[arg(long = "webhook-values", value_name = "N", env = "SIMPLETUNER_WEBHOOK_VALUES", default_value = "1000000", value_parser = parse_count)]
    pub values: usize,
    /// Max time for the head of a request to the webhook, and between two requests
    #[arg(long = "webhook-idle", value_name = "DURATION", env = "SIMPLETUNER_WEBHOOK_IDLE", default_value = "10s", value_parser = parse_duration)]
    pub idle: Duration,
    /// Max time for the body of a request to the webhook
    #[arg(long = "webhook-body-time", value_name = "DURATION", env = "SIMPLETUNER_WEBHOOK_BODY_TIME", default_value = "1m", value_parser = parse_duration)]
    pub body_time: Duration,
}

#[derive(Debug, Parser)]
struct WebhookLimitsParser {
    #[command(flatten)]
    webhook: WebhookLimits,
}

impl Default for WebhookLimits {
    /// The defaults of the command line. The variables are not read: they belong to the agent, and supervisors do not
    /// have them.
    fn default() -> Self {
        WebhookLimitsParser::try_parse_from([""]).unwrap_or_else(|error| error.exit()).webhook
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    parse_size_at_least(1 << 10, text)
}

fn parse_head_size(text: &str) -> Result<usize, String> {
    parse_size_at_least(MIN_HEAD_BYTES, text)
}

fn parse_size_at_least(min_bytes: u64, text: &str) -> Result<usize, String> {
    let range_error = || format!("use a size from {}KiB to {}GiB, such as 8MiB", min_bytes >> 10, MAX_VALUE >> 30);
    match DiskFloor::parse(text) {
        Ok(DiskFloor::Bytes(bytes)) if (min_bytes..=MAX_VALUE).contains(&bytes) => {
            usize::try_from(bytes).map_err(|_| range_error())
        }
        Ok(_) | Err(_) => Err(range_error()),
    }
}

fn parse_count(text: &str) -> Result<usize, String> {
    let is_in_range = |number: &usize| (1..=100_000_000).contains(number);
    text.parse().ok().filter(is_in_range).ok_or_else(|| "use a number from 1 to 100000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_limits_are_valid_sizes_and_counts() {
        let cases = [("1KiB", Some(1_024)), ("1GiB", Some(1 << 30)), ("2GiB", None), ("1", None), ("5%", None)];
        for (text, expected) in cases {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
        assert_eq!([parse_head_size("8KiB").ok(), parse_head_size("4KiB").ok()], [Some(8_192), None]);
        assert_eq!([parse_count("1").ok(), parse_count("0").ok(), parse_count("x").ok()], [Some(1), None, None]);
    }

    #[test]
    fn older_spec_gets_the_default_limits() -> serde_json::Result<()> {
        let limits: WebhookLimits = serde_json::from_str("{\"connections\": 3}")?;
        assert_eq!(limits, WebhookLimits { connections: 3, ..WebhookLimits::default() });
        assert_eq!((limits.body, limits.idle), (64 << 20, Duration::from_secs(10)));
        Ok(())
    }
}
