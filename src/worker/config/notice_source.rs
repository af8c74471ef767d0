//! The source of spot-termination notices.

use std::path::PathBuf;

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
    pub fn parse(value: &str) -> Result<Option<Self>, String> {
        Ok(Some(match value.trim() {
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

    pub fn display_name(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Aws => "aws".to_owned(),
            Self::Gcp => "gcp".to_owned(),
            Self::Azure => "azure".to_owned(),
            Self::File(path) => format!("file {}", path.display()),
        }
    }

    /// The source for a host with this firmware. Trying all services would take seconds on hosts without one.
    pub fn from_firmware(vendor: &str, product: &str, asset: &str) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spot_notice_values_are_parsed() {
        let parse = |value: &str| NoticeSource::parse(value);
        assert_eq!(parse("off"), Ok(None));
        assert_eq!(parse(" aws "), Ok(Some(NoticeSource::Aws)));
        assert_eq!(parse("file:/run/gone"), Ok(Some(NoticeSource::File("/run/gone".into()))));
        assert!(parse("file:").is_err() && parse("aliyun").is_err_and(|error| error.contains("azure")));
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
}
