//! Spot (preemptible) hosts: the source of a termination notice, and its consequences.
//!
//! The agent then does what `--on-stop requeue` does, within the remaining time, and exits with 0.

mod metadata;
mod notices;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

pub use metadata::start;

/// Part of the remaining time that is reserved for reports.
const REPORT_RESERVE: Duration = Duration::from_secs(10);
/// Minimum grace period of a trainer.
const MIN_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeSource {
    /// The provider that this host's firmware names.
    Auto,
    /// Amazon's metadata service.
    Aws,
    /// Google's.
    Gcp,
    /// Microsoft's.
    Azure,
    /// A notice is given when this file exists.
    File(PathBuf),
}

impl NoticeSource {
    /// Parses the value of the flag; `None` for `off`.
    ///
    /// # Errors
    /// The valid values.
    pub fn parse(word: &str) -> Result<Option<Self>, String> {
        Ok(Some(match word.trim() {
            "off" | "" => return Ok(None),
            "auto" => Self::Auto,
            "aws" => Self::Aws,
            "gcp" => Self::Gcp,
            "azure" => Self::Azure,
            other => match other.strip_prefix("file:").filter(|path| !path.is_empty()) {
                Some(path) => Self::File(path.into()),
                None => return Err(format!("{other:?} is unknown: use aws, gcp, azure, auto, off, or file:PATH")),
            },
        }))
    }

    fn display_name(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Aws => "aws".to_owned(),
            Self::Gcp => "gcp".to_owned(),
            Self::Azure => "azure".to_owned(),
            Self::File(path) => format!("file {}", path.display()),
        }
    }

    /// The source for a host with this firmware. Trying all services would take seconds on hosts without one.
    fn from_firmware(vendor: &str, product: &str, asset: &str) -> Option<Self> {
        /// Present on every virtual machine of Azure, and on no other of Microsoft's.
        const AZURE: &str = "7783-7084-3265-9085-8269-3286-77";
        if vendor.contains("Amazon EC2") {
            Some(Self::Aws)
        } else if product.contains("Google Compute Engine") {
            Some(Self::Gcp)
        } else {
            (asset == AZURE).then_some(Self::Azure)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminationNotice {
    /// How long the host still runs, if the notice says so.
    pub time_left: Option<Duration>,
}

/// The termination of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTermination {
    /// For reports.
    pub sentence: String,
    /// When, if the notice says so.
    pub at: Option<Instant>,
}

impl HostTermination {
    /// The grace period of a trainer.
    pub fn stop_grace(&self, usual: Duration, now: Instant) -> Duration {
        let Some(at) = self.at else { return usual };
        let left = at.saturating_duration_since(now).saturating_sub(REPORT_RESERVE).max(MIN_GRACE);
        usual.min(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spot_notice_values_are_parsed() {
        let read = |word: &str| NoticeSource::parse(word);
        assert_eq!(read("off"), Ok(None));
        assert_eq!(read(" aws "), Ok(Some(NoticeSource::Aws)));
        assert_eq!(read("file:/run/gone"), Ok(Some(NoticeSource::File("/run/gone".into()))));
        assert!(read("file:").is_err() && read("aliyun").is_err_and(|why| why.contains("azure")));
    }

    #[test]
    fn firmware_identifies_the_provider() {
        let cases = [
            (("Amazon EC2", "g5.xlarge", ""), Some(NoticeSource::Aws)),
            (("Google", "Google Compute Engine", ""), Some(NoticeSource::Gcp)),
            (
                ("Microsoft Corporation", "Virtual Machine", "7783-7084-3265-9085-8269-3286-77"),
                Some(NoticeSource::Azure),
            ),
            (("Microsoft Corporation", "Virtual Machine", "1234"), None),
            (("QEMU", "Standard PC", ""), None),
        ];
        for ((vendor, product, asset), expected) in cases {
            assert_eq!(NoticeSource::from_firmware(vendor, product, asset), expected, "{vendor}");
        }
    }

    #[test]
    fn grace_period_ends_before_the_host() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let grace = |left: Option<u64>| {
            HostTermination { sentence: String::new(), at: left.map(|left| now + seconds(left)) }
                .stop_grace(seconds(30), now)
        };
        let cases = [(None, 30), (Some(120), 30), (Some(30), 20), (Some(11), 1), (Some(3), 1), (Some(0), 1)];
        for (left, expected) in cases {
            assert_eq!(grace(left), seconds(expected), "{left:?}");
        }
    }
}
