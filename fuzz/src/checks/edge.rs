//! What a request says of where it comes from, who asks, and where to go next. A line each: the connection's other end,
//! `X-Forwarded-For`, `X-Forwarded-Proto`, `Cookie`, `Authorization`, and a text of any kind.

use std::net::IpAddr;

use app::domain::text::is_control_or_invisible;
use app::domain::time::Timestamp;
use axum::http::{HeaderMap, HeaderValue, header};
use ipnet::IpNet;
use url::Url;

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
        leads_nowhere_else(text);
        quoted(text);
        this_machine(text);
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
    assert_ne!(client.scheme, Scheme::DirectHttps, "that is for this server to know");
    if !is_trusted(&connected) {
        assert_eq!(client, ClientAddress { peer: connected, scheme: Scheme::Http });
    }
    // What a client writes itself stands further left, and changes nothing about who it is.
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
        "two readers, one cookie"
    );
    for scheme in [Scheme::Http, Scheme::ProxyHttps] {
        let name = session_cookie::session_name(scheme);
        let pairs = text.unwrap_or_default().split(';').map(str::trim);
        let first = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).next();
        assert_eq!(session_cookie::read_session(&headers, scheme), first);
        let kept = first.filter(|value| HeaderValue::from_str(value).is_ok());
        if let Some(value) = kept.filter(|value| !value.contains(';') && value.trim() == *value) {
            let set = HeaderValue::from_str(&format!("a=b; {name}={value}")).expect("a header");
            assert_eq!(cookie(&HeaderMap::from_iter([(header::COOKIE, set)]), name), Some(value));
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

/// As a browser reads addresses.
fn leads_nowhere_else(text: &str) {
    let base = Url::parse("https://here.example:8001/jobs").expect("an address");
    let resolve = |path: &str| base.join(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert_eq!(resolve(local_path(text)).origin(), base.origin(), "{text:?}");
    let next = resolve(&format!("/confirm?next={}", percent_escaped(text)));
    assert_eq!((next.path(), next.origin(), next.fragment()), ("/confirm", base.origin(), None), "{text:?}");
    let shown = SafeUrl::from_data(text).into_string();
    if let Ok(address) = base.join(&shown) {
        assert!(["http", "https"].contains(&address.scheme()), "{text:?}");
        assert!(!shown.starts_with('/') || address.origin() == base.origin(), "{text:?}");
    }
}

fn quoted(text: &str) {
    if !text.contains('\0') {
        let quoted = shell_quoted(text);
        assert!(!quoted.contains(is_control_or_invisible), "it is all seen");
        match quoted.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')) {
            Some(inside) => assert_eq!(ansi_c(inside).as_deref(), Some(text)),
            None => assert_eq!(shell_words::split(&quoted).ok(), Some(vec![text.to_owned()])),
        }
    }
    let escaped = percent_escaped(text);
    assert!(escaped.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)));
    let pair = format!("x={escaped}");
    let read: Vec<(String, String)> = serde_urlencoded::from_str(&pair).expect("a query");
    assert_eq!(read, [("x".to_owned(), text.to_owned())]);
}

/// What a shell reads between `$'` and `'`, as far as it is used here; none if a quote would end it early.
fn ansi_c(inside: &str) -> Option<String> {
    let (mut read, mut rest) = (String::new(), inside);
    while let Some(at) = rest.find(['\\', '\'']) {
        read.push_str(&rest[..at]);
        let escape = rest[at..].strip_prefix('\\')?;
        if let Some(digits) = escape.strip_prefix('U') {
            read.push(char::from_u32(u32::from_str_radix(digits.get(..8)?, 16).ok()?)?);
            rest = &digits[8..];
        } else {
            let letter = escape.chars().next().filter(|letter| matches!(letter, '\\' | '\''))?;
            read.push(letter);
            rest = &escape[1..];
        }
    }
    Some(read + rest)
}

/// Whatever a browser takes for another machine is not this one.
fn this_machine(host: &str) {
    if let Some(url) = Url::parse(&format!("http://{host}/")).ok().filter(|_| is_loopback_host(host)) {
        let local = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(host)) => host.is_loopback(),
            Some(url::Host::Ipv6(host)) => host.is_loopback(),
            None => false,
        };
        assert!(local, "{host:?} is {url}");
    }
}
