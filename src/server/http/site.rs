//! The browser's half of the dashboard, embedded into this program: scripts, styles, pictures.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// `site/…` and `hash.txt`, as the build left them. A build without them (tests) serves pages without scripts.
#[derive(RustEmbed)]
#[folder = "$SIMPLETUNER_SITE_DIR"]
#[allow_missing = true]
struct Web;

// Cargo does not see what a macro reads from the environment: this makes a change of it a reason to compile again.
const _: Option<&str> = option_env!("SIMPLETUNER_SITE_DIR");

/// The hashes in the names of scripts and styles; none in a build without them.
pub fn hashes() -> Option<Cow<'static, [u8]>> {
    Web::get("hash.txt").map(|file| file.data)
}

/// The address of the style sheet.
pub fn style_sheet() -> String {
    let hashes = hashes().unwrap_or_default();
    let hashes = String::from_utf8_lossy(&hashes);
    let of_css = hashes.lines().find_map(|line| line.strip_prefix("css:"));
    of_css.map_or_else(|| "/pkg/simpletuner.css".to_owned(), |hash| format!("/pkg/simpletuner.{}.css", hash.trim()))
}

/// A file of the site. Names with a hash never change, so browsers keep them.
pub fn file(path: &str, headers: &HeaderMap) -> Option<Response> {
    let path = path.trim_start_matches('/');
    let (data, encoding) = encoded(path, headers)?;
    let mut response = Body::from(data).into_response();
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let cache = if path.starts_with("pkg/") { "public, max-age=31536000, immutable" } else { "public, max-age=3600" };
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Some(encoding) = encoding {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Some(response)
}

fn encoded(path: &str, headers: &HeaderMap) -> Option<(Cow<'static, [u8]>, Option<&'static str>)> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepts = |name: &str| accepted.split(',').any(|part| part.trim().split(';').next() == Some(name));
    for (encoding, suffix) in [("br", "br"), ("gzip", "gz")] {
        if accepts(encoding)
            && let Some(file) = Web::get(&format!("site/{path}.{suffix}"))
        {
            return Some((file.data, Some(encoding)));
        }
    }
    Web::get(&format!("site/{path}")).map(|file| (file.data, None))
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
