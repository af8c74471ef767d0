//! The configuration's files: verified, and unpacked below one directory only.

pub mod placeholders;

use std::io;
use std::path::{Component, Path};

use app::domain::executable_files::is_executable;
use app::protocol::configs::ConfigBundle;
use sha2::{Digest, Sha256};

use crate::worker::clock::encode_hex;

/// The file that every configuration has.
pub const CONFIG_FILE: &str = "config.json";

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Its digest is not the offered one.
    #[error("the configuration's files arrived damaged (SHA-256 is {found}, the offer says {expected})")]
    Damaged { found: String, expected: String },
    #[error("cannot read the configuration's files: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A name that would leave the directory, or that no file system allows.
    #[error(
        "the configuration has a file named {0:?}; names must be relative, stay inside the configuration, have at \
        most 255 bytes per component, and not be below another file"
    )]
    InvalidPath(String),
    #[error("the configuration has no config.json")]
    MissingConfig,
    /// Contains code, which only the host's owner may allow.
    #[error(
        "the configuration has the file {0:?}, which Python could run. This worker accepts no code in \
        configurations: remove the file, or ask the worker's owner to start it with --allow-code"
    )]
    CodeNotAllowed(String),
    #[error("cannot write the configuration's files: {0}")]
    Write(#[from] io::Error),
}

/// Parses a received bundle. It must have the offered digest, and may contain code only if that is allowed.
pub fn parse(body: &[u8], sha256: &str, allow_code: bool) -> Result<ConfigBundle, BundleError> {
    let found = encode_hex(&Sha256::digest(body));
    if !found.eq_ignore_ascii_case(sha256) {
        return Err(BundleError::Damaged { found, expected: sha256.to_owned() });
    }
    let bundle: ConfigBundle = serde_json::from_slice(body)?;
    // A name that no file system allows is an error of the configuration, not of this host.
    let is_bad = |name: &&String| !is_safe_relative_path(name) || is_too_long(name) || is_below_a_file(name, &bundle);
    if let Some(name) = bundle.files.keys().find(is_bad) {
        return Err(BundleError::InvalidPath(name.chars().take(100).collect()));
    }
    if !bundle.files.contains_key(CONFIG_FILE) {
        return Err(BundleError::MissingConfig);
    }
    match bundle.files.keys().find(|name| !allow_code && is_executable(name)) {
        Some(name) => Err(BundleError::CodeNotAllowed(name.chars().take(100).collect())),
        None => Ok(bundle),
    }
}

/// Whether a component is longer than file systems allow.
fn is_too_long(name: &str) -> bool {
    name.split('/').any(|part| part.len() > 255)
}

/// Whether one of its parent directories is a file in the bundle.
fn is_below_a_file(name: &str, bundle: &ConfigBundle) -> bool {
    name.match_indices('/').any(|(end, _)| bundle.files.contains_key(&name[..end]))
}

/// Writes the files of a bundle that [`parse`] accepted.
pub fn unpack(bundle: &ConfigBundle, dir: &Path) -> Result<(), BundleError> {
    for (name, text) in &bundle.files {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Whether a path is relative, and has no `..` or empty components.
pub fn is_safe_relative_path(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\0', '\\'])
        && !name.split('/').any(|part| part.is_empty() || part == ".")
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_file_names_are_rejected() {
        for good in ["config.json", "a/b.json", "..a/b", "ü.txt"] {
            assert!(is_safe_relative_path(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "./a", "a//b", "a/", "a\\b", "a\0b", "."] {
            assert!(!is_safe_relative_path(bad), "{bad}");
        }
    }

    #[test]
    fn bundle_with_wrong_digest_or_content_is_rejected() {
        let body = br#"{"files": {"config.json": "{}"}}"#;
        let sha = encode_hex(&Sha256::digest(body));
        assert!(parse(body, &sha.to_uppercase(), false).is_ok());
        assert!(matches!(parse(body, "00", false), Err(BundleError::Damaged { .. })));
        let rejected = |body: &[u8]| parse(body, &encode_hex(&Sha256::digest(body)), false);
        assert!(matches!(rejected(b"{"), Err(BundleError::Unreadable(_))));
        assert!(matches!(rejected(br#"{"files": {}}"#), Err(BundleError::MissingConfig)));
        let long = "x".repeat(256);
        for name in ["../x", "config.json/x", long.as_str()] {
            let body = serde_json::json!({"files": {"config.json": "", name: ""}}).to_string();
            assert!(matches!(rejected(body.as_bytes()), Err(BundleError::InvalidPath(_))), "{name}");
        }
        let body = serde_json::json!({"files": {"config.json": "", "simpletuner/train.py": ""}}).to_string();
        assert!(
            matches!(rejected(body.as_bytes()), Err(BundleError::CodeNotAllowed(name)) if name == "simpletuner/train.py")
        );
        assert!(parse(body.as_bytes(), &encode_hex(&Sha256::digest(body.as_bytes())), true).is_ok());
    }
}
