//! Flags for whoever operates the host: how it is watched, and when it ends by itself.

use app::logging::Format;
use clap::Args;
use reqwest::Url;

/// See the module.
#[derive(Debug, Args)]
pub struct OpsArgs {
    /// End after so long without a job (`600`, `90s`, `10m`, `2h`), so that a rented host stops costing
    #[arg(long, value_name = "DURATION", env = "SIMPLETUNER_MAX_IDLE")]
    pub max_idle: Option<String>,
    /// Who says that this host is about to be taken away: aws, gcp, azure, auto, off, or `file:PATH`
    #[arg(long, value_name = "WHO", env = "SIMPLETUNER_SPOT_NOTICE", default_value = "off")]
    pub spot_notice: String,
    /// Where the provider's metadata service is
    #[arg(long, value_name = "URL", hide = true)]
    pub spot_metadata_url: Option<Url>,
}

/// How the agent's log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text and a status line on a terminal, JSON elsewhere.
    Auto,
    /// As it was said, without a status line.
    As(Format),
}

impl LogFormat {
    /// Reads the word.
    ///
    /// # Errors
    /// With the words there are.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Self::Auto),
            other => Format::parse(other).map(Self::As).map_err(|_| "write auto, text or json".to_owned()),
        }
    }

    /// What that is here.
    pub fn on(self, terminal: bool) -> Format {
        match self {
            Self::As(format) => format,
            Self::Auto if terminal => Format::Text,
            Self::Auto => Format::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_for_people_unless_somebody_says_otherwise() {
        let on = |word: &str, terminal| LogFormat::parse(word).map(|format| format.on(terminal));
        assert_eq!((on("auto", true), on("auto", false)), (Ok(Format::Text), Ok(Format::Json)));
        assert_eq!((on("json", true), on("text", false)), (Ok(Format::Json), Ok(Format::Text)));
        assert!(on("xml", true).is_err_and(|why| why.contains("auto")));
    }
}
