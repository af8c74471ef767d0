//! The configuration's files: checked, and unpacked below one directory and nowhere else.

pub mod places;

use std::io;
use std::path::{Component, Path};

use app::domain::code::is_code;
use app::protocol::configs::Bundle;
use sha2::{Digest, Sha256};

use crate::clock::hex;

/// The file that every configuration has.
pub const CONFIG_FILE: &str = "config.json";

/// Why a bundle is not used.
#[derive(Debug, thiserror::Error)]
pub enum BadBundle {
    /// It is not what the offer named.
    #[error("the configuration's files arrived damaged (SHA-256 is {found}, the offer says {expected})")]
    Damaged {
        /// What came.
        found: String,
        /// What was offered.
        expected: String,
    },
    /// It is not JSON as agreed.
    #[error("the configuration's files cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A name that would leave the directory, or that no disk takes.
    #[error(
        "the configuration has a file named {0:?}; names must be relative, stay inside the configuration, be no longer than \
         255 bytes in each part, and not be below another file"
    )]
    BadPath(String),
    /// There is no `config.json`.
    #[error("the configuration has no config.json")]
    NoConfig,
    /// It brings code, which only the host's owner may run.
    #[error(
        "the configuration has the file {0:?}, which Python could run. This worker takes no code from configurations: remove \
         the file, or let the worker's owner start it with --allow-code"
    )]
    Code(String),
    /// The disk refused.
    #[error("the configuration's files cannot be written: {0}")]
    Disk(#[from] io::Error),
}

/// Reads a bundle as it came, if it is the offered one, and brings code only where that is allowed.
pub fn open(body: &[u8], sha256: &str, allow_code: bool) -> Result<Bundle, BadBundle> {
    let found = hex(&Sha256::digest(body));
    if !found.eq_ignore_ascii_case(sha256) {
        return Err(BadBundle::Damaged { found, expected: sha256.to_owned() });
    }
    let bundle: Bundle = serde_json::from_slice(body)?;
    // What no disk takes is the configuration's fault, and not this host's.
    let is_bad = |name: &&String| !is_plain(name) || is_too_long(name) || is_below_a_file(name, &bundle);
    if let Some(name) = bundle.files.keys().find(is_bad) {
        return Err(BadBundle::BadPath(name.chars().take(100).collect()));
    }
    if !bundle.files.contains_key(CONFIG_FILE) {
        return Err(BadBundle::NoConfig);
    }
    match bundle.files.keys().find(|name| !allow_code && is_code(name)) {
        Some(name) => Err(BadBundle::Code(name.chars().take(100).collect())),
        None => Ok(bundle),
    }
}

/// Whether a part of it is longer than file systems take.
fn is_too_long(name: &str) -> bool {
    name.split('/').any(|part| part.len() > 255)
}

/// Whether what would have to be its directory is a file.
fn is_below_a_file(name: &str, bundle: &Bundle) -> bool {
    name.match_indices('/').any(|(end, _)| bundle.files.contains_key(&name[..end]))
}

/// Writes the files of a bundle that [`open`] let through.
pub fn unpack(bundle: &Bundle, dir: &Path) -> Result<(), BadBundle> {
    for (name, text) in &bundle.files {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Whether a path is relative, and only goes down.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\0', '\\'])
        && !name.split('/').any(|part| part.is_empty() || part == ".")
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names() {
        for good in ["config.json", "a/b.json", "..a/b", "ü.txt"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "./a", "a//b", "a/", "a\\b", "a\0b", "."] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_not_the_offered_bundle_is_refused() {
        let body = br#"{"files": {"config.json": "{}"}}"#;
        let sha = hex(&Sha256::digest(body));
        assert!(open(body, &sha.to_uppercase(), false).is_ok());
        assert!(matches!(open(body, "00", false), Err(BadBundle::Damaged { .. })));
        let refused = |body: &[u8]| open(body, &hex(&Sha256::digest(body)), false);
        assert!(matches!(refused(b"{"), Err(BadBundle::Unreadable(_))));
        assert!(matches!(refused(br#"{"files": {}}"#), Err(BadBundle::NoConfig)));
        let long = "x".repeat(256);
        for name in ["../x", "config.json/x", long.as_str()] {
            let body = serde_json::json!({"files": {"config.json": "", name: ""}}).to_string();
            assert!(matches!(refused(body.as_bytes()), Err(BadBundle::BadPath(_))), "{name}");
        }
        let body = serde_json::json!({"files": {"config.json": "", "simpletuner/train.py": ""}}).to_string();
        assert!(matches!(refused(body.as_bytes()), Err(BadBundle::Code(name)) if name == "simpletuner/train.py"));
        assert!(open(body.as_bytes(), &hex(&Sha256::digest(body.as_bytes())), true).is_ok());
    }
}
