//! How pages refer to scripts and styles: `Leptos.toml`, compiled in; a file of that name in the data directory
//! overrides it.

use std::net::SocketAddr;
use std::path::Path;

use leptos::config::{LeptosOptions, get_config_from_str};

use crate::http::site;

const BUILT_IN_CONFIG: &str = include_str!("../../../Leptos.toml");

/// Returns the options for pages, and writes the hashes of script names where Leptos expects them.
pub fn leptos_options(data: &Path, address: SocketAddr) -> Result<LeptosOptions, String> {
    let override_file = data.join("Leptos.toml");
    let text = if override_file.is_file() {
        std::fs::read_to_string(&override_file)
            .map_err(|error| format!("cannot read {}: {error}", override_file.display()))?
    } else {
        BUILT_IN_CONFIG.to_owned()
    };
    let config =
        get_config_from_str(&text).map_err(|error| format!("{} is invalid: {error}", override_file.display()))?;
    let mut options = config;
    options.site_addr = address;
    match site::hashes() {
        // A build without scripts.
        None => options.hash_files = false,
        Some(hashes) => {
            let file = data.join("site-hashes.txt");
            std::fs::write(&file, hashes).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            options.hash_file = file.to_string_lossy().into_owned().into();
        }
    }
    Ok(options)
}
