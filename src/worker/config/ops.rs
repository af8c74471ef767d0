//! Settings for when the agent exits by itself.

use std::time::Duration;

use reqwest::Url;

use super::NoticeSource;
use crate::worker::args::ops::ShutdownArgs;
use app::command_line::duration::parse_duration;

#[derive(Debug, Clone, Default)]
pub struct ShutdownConfig {
    /// How long the agent stays without a job.
    pub max_idle: Option<Duration>,
    /// Source of spot notices.
    pub spot_source: Option<NoticeSource>,
    /// URL of the provider's metadata service, if not the usual one.
    pub spot_metadata_url: Option<Url>,
}

impl ShutdownConfig {
    /// Validates the arguments.
    ///
    /// # Errors
    /// A message for the user.
    pub fn from_args(args: &ShutdownArgs) -> Result<Self, String> {
        let max_idle = args.max_idle.as_deref().filter(|text| !text.trim().is_empty());
        Ok(Self {
            max_idle: max_idle.map(parse_duration).transpose().map_err(|error| format!("--max-idle {error}"))?,
            spot_source: NoticeSource::parse(&args.spot_notice).map_err(|error| format!("--spot-notice {error}"))?,
            spot_metadata_url: args.spot_metadata_url.clone(),
        })
    }
}
