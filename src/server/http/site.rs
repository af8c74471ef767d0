//! The dashboard's browser assets, embedded into this program: scripts, styles, images.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// `site/…` and `hash.txt` of the build. Without them (tests), pages have no scripts.
#[derive(RustEmbed)]
#[folder = "$SIMPLETUNER_SITE_DIR"]
#[allow_missing = true]
struct SiteAssets;

// Cargo does not track what a macro reads from the environment; this triggers a rebuild when it changes.
const _: Option<&str> = option_env!("SIMPLETUNER_SITE_DIR");

/// Returns the hashes in the names of scripts and styles; `None` in a build without them.
pub fn hashes() -> Option<Cow<'static, [u8]>> {
    SiteAssets::get("hash.txt").map(|file| file.data)
}

/// Returns the URL of the style sheet.
pub fn style_sheet() -> String {
    let hashes = hashes().unwrap_or_default();
    let hashes = String::from_utf8_lossy(&hashes);
    let css_hash = hashes.lines().find_map(|line| line.strip_prefix("css:"));
    css_hash.map_or_else(|| "/pkg/simpletuner.css".to_owned(), |hash| format!("/pkg/simpletuner.{}.css", hash.trim()))
}

/// Serves a file of the site. Browsers may cache names with a hash forever.
pub fn serve_file(path: &str, headers: &HeaderMap) -> Option<Response> {
    let path = path.trim_start_matches('/');
    let (data, encoding) = find_encoded(path, headers)?;
    let mut response = Body::from(data).into_response();
    let response_headers = response.headers_mut();
    response_headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    response_headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let cache = if path.starts_with("pkg/") { "public, max-age=31536000, immutable" } else { "public, max-age=3600" };
    response_headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Some(encoding) = encoding {
        response_headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Some(response)
}

fn find_encoded(path: &str, headers: &HeaderMap) -> Option<(Cow<'static, [u8]>, Option<&'static str>)> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepts = |name: &str| accepted.split(',').any(|part| part.trim().split(';').next() == Some(name));
    for (encoding, suffix) in [("br", "br"), ("gzip", "gz")] {
        if accepts(encoding)
            && let Some(file) = SiteAssets::get(&format!("site/{path}.{suffix}"))
        {
            return Some((file.data, Some(encoding)));
        }
    }
    SiteAssets::get(&format!("site/{path}")).map(|file| (file.data, None))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "js" => "text/javascript; charset=utf-8",
        "wasm" => "application/wasm",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "txt" => "text/plain; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        _ => "application/octet-stream",
    }
}
