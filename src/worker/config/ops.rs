//! What the operator said of the host's end.

use std::time::Duration;

use reqwest::Url;

use super::span::duration;
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
