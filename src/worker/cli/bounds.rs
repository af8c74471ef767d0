//! How much is read of what others send: the orchestrator, or whoever answers in its place, and the trainer.

use std::time::Duration;

use app::domain::watermark::Floor;
use clap::{Args, Parser};
use serde::{Deserialize, Serialize};

use crate::config::span::duration;

/// Where `--help` shows them, by which a test knows them.
pub const HEADING: &str = "Limits of what is read";
/// No more than this is ever held for one message, in bytes.
const MOST: u64 = 1 << 30;
/// Less makes no HTTP server.
const LEAST_HEAD: u64 = 8 << 10;

/// Of the orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
#[command(next_help_heading = HEADING)]
pub struct Bounds {
    /// The largest answer in JSON
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_ANSWER", default_value = "8MiB", value_parser = size)]
    pub max_answer: usize,
    /// The largest text of an error; of a larger one only the status counts
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_ERROR", default_value = "16KiB", value_parser = size)]
    pub max_error: usize,
    /// The largest event of the stream
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_EVENT", default_value = "1MiB", value_parser = size)]
    pub max_event: usize,
    /// The largest configuration with its files, as it is sent: 8 MiB of text as JSON, where a character can take six bytes
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_MAX_BUNDLE", default_value = "64MiB", value_parser = size)]
    pub max_bundle: usize,
    /// Of a trainer.
    #[command(flatten)]
    pub webhook: WebhookBounds,
}

/// Of a trainer: the port of its webhook is open to every user of the host. A part of `spec.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(next_help_heading = HEADING)]
#[serde(default)]
pub struct WebhookBounds {
    /// Connections to the webhook of a job at once; of those without its key, the oldest makes room
    #[arg(long = "webhook-connections", value_name = "N", env = "SIMPLETUNER_WEBHOOK_CONNECTIONS", default_value = "64", value_parser = number)]
    pub connections: usize,
    /// The largest head of a request to it
    #[arg(long = "webhook-head", value_name = "SIZE", env = "SIMPLETUNER_WEBHOOK_HEAD", default_value = "16KiB", value_parser = head)]
    pub head: usize,
    /// The largest body of a request to it, one body at a time; validation images come inside events
    #[arg(long = "webhook-body", value_name = "SIZE", env = "SIMPLETUNER_WEBHOOK_BODY", default_value = "64MiB", value_parser = size)]
    pub body: usize,
    /// The most values in one request to it: each takes many times the memory of its text
    #[arg(long = "webhook-values", value_name = "N", env = "SIMPLETUNER_WEBHOOK_VALUES", default_value = "1000000", value_parser = number)]
    pub values: usize,
    /// The time for the head of a request to it, and between two requests
    #[arg(long = "webhook-idle", value_name = "DURATION", env = "SIMPLETUNER_WEBHOOK_IDLE", default_value = "10s", value_parser = duration)]
    pub idle: Duration,
    /// The time for the body of a request to it
    #[arg(long = "webhook-body-time", value_name = "DURATION", env = "SIMPLETUNER_WEBHOOK_BODY_TIME", default_value = "1m", value_parser = duration)]
    pub body_time: Duration,
}

/// A command line of nothing else.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    webhook: WebhookBounds,
}

impl Default for WebhookBounds {
    /// As the command line says where nobody says anything; the variables are the agent's, and no supervisor has them.
    fn default() -> Self {
        Alone::try_parse_from([""]).unwrap_or_else(|error| error.exit()).webhook
    }
}

fn size(text: &str) -> Result<usize, String> {
    at_least(1 << 10, text)
}

fn head(text: &str) -> Result<usize, String> {
    at_least(LEAST_HEAD, text)
}

fn at_least(least: u64, text: &str) -> Result<usize, String> {
    let wrong = || format!("write a size from {}KiB to {}GiB, like 8MiB", least >> 10, MOST >> 30);
    match Floor::parse(text) {
        Ok(Floor::Bytes(bytes)) if (least..=MOST).contains(&bytes) => usize::try_from(bytes).map_err(|_| wrong()),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

fn number(text: &str) -> Result<usize, String> {
    let fits = |number: &usize| (1..=100_000_000).contains(number);
    text.parse().ok().filter(fits).ok_or_else(|| "give a number from 1 to 100000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_sizes_and_numbers_that_can_be() {
        let cases = [("1KiB", Some(1_024)), ("1GiB", Some(1 << 30)), ("2GiB", None), ("1", None), ("5%", None)];
        for (text, expected) in cases {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
        assert_eq!([head("8KiB").ok(), head("4KiB").ok()], [Some(8_192), None]);
        assert_eq!([number("1").ok(), number("0").ok(), number("x").ok()], [Some(1), None, None]);
    }

    #[test]
    fn an_older_spec_has_what_nobody_has_changed() -> serde_json::Result<()> {
        let bounds: WebhookBounds = serde_json::from_str("{\"connections\": 3}")?;
        assert_eq!(bounds, WebhookBounds { connections: 3, ..WebhookBounds::default() });
        assert_eq!((bounds.body, bounds.idle), (64 << 20, Duration::from_secs(10)));
        Ok(())
    }
}
