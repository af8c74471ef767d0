//! The origin, the credentials and the next page of a request. One line each: the peer address of the connection,
//! `X-Forwarded-For`, `X-Forwarded-Proto`, `Cookie`, `Authorization`, and any text, also as a `Range`.

use std::net::IpAddr;

use app::domain::text::is_control_or_invisible;
use app::domain::time::Timestamp;
use axum::http::{HeaderMap, HeaderValue, header};
use ipnet::IpNet;
use url::Url;

use crate::http::edge::byte_range::RequestedRange;
use crate::http::edge::client_addr::{ClientAddress, Scheme, resolve_client};
use crate::http::edge::loopback_host::is_loopback_host;
use crate::http::edge::request_headers::{bearer_token, cookie};
use crate::http::guards::session_cookie;
use crate::prefs::{Prefs, Theme};
use crate::safe_url::SafeUrl;
use crate::text::{local_path, percent_escaped, shell_quoted};

/// See the module.
pub fn check(data: &[u8]) {
    let mut lines = data.splitn(6, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (connected, hosts, protocols) = (next(), next(), next());
    proxies(connected, hosts, protocols);
    cookies(next());
    authorization(next());
    if let Ok(text) = std::str::from_utf8(next()) {
        assert_stays_local(text);
        assert_quoted(text);
        assert_loopback(text);
        assert_within_file(text);
    }
}

fn proxies(connected: &[u8], hosts: &[u8], protocols: &[u8]) {
    let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].iter().map(|net| net.parse().expect("a net")).collect();
    let is_trusted = |host: &IpAddr| trusted.iter().any(|net| net.contains(host));
    let connected = std::str::from_utf8(connected).ok().and_then(|text| text.parse().ok());
    let connected: IpAddr = connected.unwrap_or(IpAddr::from([10, 0, 0, 1]));
    let resolve = |hosts: &[u8], protocols: &[u8]| -> Option<ClientAddress> {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_bytes(hosts).ok()?);
        headers.insert("x-forwarded-proto", HeaderValue::from_bytes(protocols).ok()?);
        Some(resolve_client(connected, false, &headers, &trusted))
    };
    let Some(client) = resolve(hosts, protocols) else { return };
    let connected = connected.to_canonical();
    assert_ne!(client.scheme, Scheme::DirectHttps, "a header must not claim direct HTTPS");
    if !is_trusted(&connected) {
        assert_eq!(client, ClientAddress { peer: connected, scheme: Scheme::Http });
    }
    // Entries that the client itself sends are further left, and do not change its address.
    if is_trusted(&connected) && !is_trusted(&client.peer) {
        let spoof = |list: &[u8], spoofed: &[u8]| [spoofed, b",", list].concat();
        let spoofed_client = resolve(&spoof(hosts, b"127.0.0.1, 10.0.0.9"), protocols).expect("a header");
        assert_eq!(spoofed_client.peer, client.peer);
        let count = |list: &[u8]| list.split(|byte| *byte == b',').count();
        if std::str::from_utf8(protocols).is_ok_and(|text| text.is_ascii()) && count(protocols) >= count(hosts) {
            let spoofed_client = resolve(hosts, &spoof(protocols, b"https")).expect("a header");
            assert_eq!(spoofed_client, client);
        }
    }
}

fn cookies(line: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(line) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::COOKIE, value);
    let text = std::str::from_utf8(line).ok().filter(|_| headers[header::COOKIE].to_str().is_ok());
    let theme = cookie(&headers, "theme").and_then(Theme::parse).unwrap_or_default();
    assert_eq!(
        Prefs::from_headers(text.unwrap_or_default(), text.unwrap_or_default(), Timestamp(0)).theme,
        theme,
        "both readers agree"
    );
    for scheme in [Scheme::Http, Scheme::ProxyHttps] {
        let name = session_cookie::session_name(scheme);
        let pairs = text.unwrap_or_default().split(';').map(str::trim);
        let first = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).next();
        assert_eq!(session_cookie::read_session(&headers, scheme), first);
        let valid = first.filter(|value| HeaderValue::from_str(value).is_ok());
        if let Some(value) = valid.filter(|value| !value.contains(';') && value.trim() == *value) {
            let cookies = HeaderValue::from_str(&format!("a=b; {name}={value}")).expect("a header");
            assert_eq!(cookie(&HeaderMap::from_iter([(header::COOKIE, cookies)]), name), Some(value));
        }
    }
}

fn authorization(line: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(line) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, value);
    if let Some(token) = bearer_token(&headers) {
        assert!(line[..7].eq_ignore_ascii_case(b"bearer ") && token == token.trim());
        assert!(line.windows(token.len().max(1)).any(|found| found == token.as_bytes()) || token.is_empty());
    }
}

fn assert_within_file(text: &str) {
    for size in [0, 1, 1_000, u64::MAX] {
        for range in [text.to_owned(), format!("bytes={text}")] {
            if let RequestedRange::Bytes(bytes) = RequestedRange::parse(&range, size) {
                assert!(bytes.start < bytes.end && bytes.end <= size, "{range:?} of {size}: {bytes:?}");
            }
        }
    }
}

/// Addresses are resolved as in a browser.
fn assert_stays_local(text: &str) {
    let base = Url::parse("https://here.example:8001/jobs").expect("an address");
    let resolve = |path: &str| base.join(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert_eq!(resolve(local_path(text)).origin(), base.origin(), "{text:?}");
    let next = resolve(&format!("/confirm?next={}", percent_escaped(text)));
    assert_eq!((next.path(), next.origin(), next.fragment()), ("/confirm", base.origin(), None), "{text:?}");
    let safe_url = SafeUrl::from_data(text).into_string();
    if let Ok(address) = base.join(&safe_url) {
        assert!(["http", "https"].contains(&address.scheme()), "{text:?}");
        assert!(!safe_url.starts_with('/') || address.origin() == base.origin(), "{text:?}");
    }
}

fn assert_quoted(text: &str) {
    if !text.contains('\0') {
        let quoted = shell_quoted(text);
        assert!(!quoted.contains(is_control_or_invisible), "all characters are visible");
        match quoted.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')) {
            Some(inside) => assert_eq!(decode_ansi_c(inside).as_deref(), Some(text)),
            None => assert_eq!(shell_words::split(&quoted).ok(), Some(vec![text.to_owned()])),
        }
    }
    let escaped = percent_escaped(text);
    assert!(escaped.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)));
    let pair = format!("x={escaped}");
    let decoded: Vec<(String, String)> = serde_urlencoded::from_str(&pair).expect("a query");
    assert_eq!(decoded, [("x".to_owned(), text.to_owned())]);
}

/// Decodes the text between `$'` and `'` as a shell does, as far as used here; none if a quote ends it early.
fn decode_ansi_c(inside: &str) -> Option<String> {
    let (mut decoded, mut rest) = (String::new(), inside);
    while let Some(index) = rest.find(['\\', '\'']) {
        decoded.push_str(&rest[..index]);
        let escape = rest[index..].strip_prefix('\\')?;
        if let Some(digits) = escape.strip_prefix('U') {
            decoded.push(char::from_u32(u32::from_str_radix(digits.get(..8)?, 16).ok()?)?);
            rest = &digits[8..];
        } else {
            let letter = escape.chars().next().filter(|letter| matches!(letter, '\\' | '\''))?;
            decoded.push(letter);
            rest = &escape[1..];
        }
    }
    Some(decoded + rest)
}

/// A host that is accepted as loopback is this machine for a browser, too.
fn assert_loopback(host: &str) {
    if let Some(url) = Url::parse(&format!("http://{host}/")).ok().filter(|_| is_loopback_host(host)) {
        let is_local = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(host)) => host.is_loopback(),
            Some(url::Host::Ipv6(host)) => host.is_loopback(),
            None => false,
        };
        assert!(is_local, "{host:?} is {url}");
    }
}
