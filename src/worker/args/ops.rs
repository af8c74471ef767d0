//! Flags for operating the host: logging, and when the agent exits by itself.

use app::logging::LogLineFormat;
use clap::Args;
use reqwest::Url;

#[derive(Debug, Args)]
pub struct ShutdownArgs {
    /// Exit after this time without a job (`600`, `90s`, `10m`, `2h`), which saves cost on rented hosts
    #[arg(long, value_name = "DURATION", env = "SIMPLETUNER_MAX_IDLE")]
    pub max_idle: Option<String>,
    /// Source of spot-termination notices: aws, gcp, azure, auto, off, or `file:PATH`
    #[arg(long, value_name = "WHO", env = "SIMPLETUNER_SPOT_NOTICE", default_value = "off")]
    pub spot_notice: String,
    /// URL of the provider's metadata service
    #[arg(long, value_name = "URL", hide = true)]
    pub spot_metadata_url: Option<Url>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text and a status line in a terminal, JSON elsewhere.
    Auto,
    /// As configured, without a status line.
    Explicit(LogLineFormat),
}

impl LogFormat {
    /// Parses the value of the flag.
    ///
    /// # Errors
    /// The valid values.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            other => LogLineFormat::parse(other).map(Self::Explicit).map_err(|_| "use auto, text or json".to_owned()),
        }
    }

    /// The format for this environment.
    pub fn resolve(self, terminal: bool) -> LogLineFormat {
        match self {
            Self::Explicit(format) => format,
            Self::Auto if terminal => LogLineFormat::Text,
            Self::Auto => LogLineFormat::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_gets_text_unless_configured() {
        let resolve = |name: &str, terminal| LogFormat::parse(name).map(|format| format.resolve(terminal));
        assert_eq!((resolve("auto", true), resolve("auto", false)), (Ok(LogLineFormat::Text), Ok(LogLineFormat::Json)));
        assert_eq!((resolve("json", true), resolve("text", false)), (Ok(LogLineFormat::Json), Ok(LogLineFormat::Text)));
        assert!(resolve("xml", true).is_err_and(|error| error.contains("auto")));
    }
}
