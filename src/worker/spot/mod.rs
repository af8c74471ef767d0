//! A host that is about to be taken away (spot, preemptible): who says so, and what follows.
//!
//! The agent then does what `--on-stop requeue` does, within the time that is left, and ends with 0.

mod judge;
mod poll;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

pub use poll::start;

/// Of the time that is left, so much is for reports.
const REPORTING: Duration = Duration::from_secs(10);
/// A trainer gets no less than this.
const SHORTEST_GRACE: Duration = Duration::from_secs(1);

/// Who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Whoever this host's firmware says that it belongs to.
    Auto,
    /// Amazon's metadata service.
    Aws,
    /// Google's.
    Gcp,
    /// Microsoft's.
    Azure,
    /// Somebody makes this file.
    File(PathBuf),
}

impl Source {
    /// Reads the word; none for `off`.
    ///
    /// # Errors
    /// With the words there are.
    pub fn parse(word: &str) -> Result<Option<Self>, String> {
        Ok(Some(match word.trim() {
            "off" | "" => return Ok(None),
            "auto" => Self::Auto,
            "aws" => Self::Aws,
            "gcp" => Self::Gcp,
            "azure" => Self::Azure,
            other => match other.strip_prefix("file:").filter(|path| !path.is_empty()) {
                Some(path) => Self::File(path.into()),
                None => return Err(format!("{other:?} is not known: write aws, gcp, azure, auto, off, or file:PATH")),
            },
        }))
    }

    /// As it is said to people.
    fn name(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Aws => "aws".to_owned(),
            Self::Gcp => "gcp".to_owned(),
            Self::Azure => "azure".to_owned(),
            Self::File(path) => format!("file {}", path.display()),
        }
    }

    /// Of a host whose firmware says this. Asking who answers would take seconds where nobody does.
    fn by_firmware(vendor: &str, product: &str, asset: &str) -> Option<Self> {
        /// On every virtual machine of Azure, and on no other of Microsoft's.
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

/// A notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// How long the host still lasts, if it was said.
    pub left: Option<Duration>,
}

/// The host's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEnd {
    /// For reports.
    pub sentence: String,
    /// When, if it was said.
    pub at: Option<Instant>,
}

impl HostEnd {
    /// How long a trainer gets to end.
    pub fn grace(&self, usual: Duration, now: Instant) -> Duration {
        let Some(at) = self.at else { return usual };
        let left = at.saturating_duration_since(now).saturating_sub(REPORTING).max(SHORTEST_GRACE);
        usual.min(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_their_source() {
        let read = |word: &str| Source::parse(word);
        assert_eq!(read("off"), Ok(None));
        assert_eq!(read(" aws "), Ok(Some(Source::Aws)));
        assert_eq!(read("file:/run/gone"), Ok(Some(Source::File("/run/gone".into()))));
        assert!(read("file:").is_err() && read("aliyun").is_err_and(|why| why.contains("azure")));
    }

    #[test]
    fn the_firmware_says_whose_host_it_is() {
        let cases = [
            (("Amazon EC2", "g5.xlarge", ""), Some(Source::Aws)),
            (("Google", "Google Compute Engine", ""), Some(Source::Gcp)),
            (("Microsoft Corporation", "Virtual Machine", "7783-7084-3265-9085-8269-3286-77"), Some(Source::Azure)),
            (("Microsoft Corporation", "Virtual Machine", "1234"), None),
            (("QEMU", "Standard PC", ""), None),
        ];
        for ((vendor, product, asset), expected) in cases {
            assert_eq!(Source::by_firmware(vendor, product, asset), expected, "{vendor}");
        }
    }

    #[test]
    fn the_grace_is_no_longer_than_the_host_lasts() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let grace = |left: Option<u64>| {
            HostEnd { sentence: String::new(), at: left.map(|left| now + seconds(left)) }.grace(seconds(30), now)
        };
        let cases = [(None, 30), (Some(120), 30), (Some(30), 20), (Some(11), 1), (Some(3), 1), (Some(0), 1)];
        for (left, expected) in cases {
            assert_eq!(grace(left), seconds(expected), "{left:?}");
        }
    }
}
