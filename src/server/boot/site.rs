//! How pages refer to the browser's half: `Leptos.toml`, compiled in; a file of that name beside the data wins.

use std::net::SocketAddr;
use std::path::Path;

use leptos::config::{LeptosOptions, get_config_from_str};

use crate::http::site;

const BUILT_IN: &str = include_str!("../../../Leptos.toml");

/// The options for pages. The hashes of script names are put where Leptos looks for them.
pub fn options(data: &Path, address: SocketAddr) -> Result<LeptosOptions, String> {
    let own = data.join("Leptos.toml");
    let text = if own.is_file() {
        std::fs::read_to_string(&own).map_err(|error| format!("{} cannot be read: {error}", own.display()))?
    } else {
        BUILT_IN.to_owned()
    };
    let config = get_config_from_str(&text).map_err(|error| format!("{} is not usable: {error}", own.display()))?;
    let mut options = config;
    options.site_addr = address;
    match site::hashes() {
        // A build without the browser's half: pages without scripts.
        None => options.hash_files = false,
        Some(hashes) => {
            let file = data.join("site-hashes.txt");
            std::fs::write(&file, hashes).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
            options.hash_file = file.to_string_lossy().into_owned().into();
        }
    }
    Ok(options)
}
