//! Finds the client's address, and whether it uses HTTPS. Proxy headers are trusted from the proxies in
//! `--trusted-proxies` only: any client can send them.

use std::net::IpAddr;

use axum::http::{Extensions, HeaderMap};
use ipnet::IpNet;

/// The scheme that the client uses, and where TLS ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    #[default]
    Http,
    /// HTTPS, terminated by a trusted proxy.
    ProxyHttps,
    /// HTTPS, terminated by this server.
    DirectHttps,
}

impl Scheme {
    /// Returns the scheme of a direct connection to this server.
    pub fn direct(tls: bool) -> Self {
        if tls { Self::DirectHttps } else { Self::Http }
    }

    /// Returns the scheme of the request with these extensions.
    pub fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// Returns whether the client's connection is encrypted.
    pub fn is_secure(self) -> bool {
        self != Self::Http
    }

    /// Returns the scheme as in URLs.
    pub fn as_str(self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }
}

/// The address and scheme of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's host: the peer of the connection, or the one that trusted proxies report.
    pub peer: IpAddr,
    pub scheme: Scheme,
}

/// Resolves the client of a request on a connection from `connection_peer`.
///
/// Proxies append on the right. The list is read from there, and the first host that is not a trusted proxy is the
/// client: it could have written everything further left.
pub fn resolve_client(connection_peer: IpAddr, tls: bool, headers: &HeaderMap, trusted: &[IpNet]) -> ClientAddress {
    let connection_scheme = Scheme::direct(tls);
    let is_trusted = |host: &IpAddr| trusted.iter().any(|net| net.contains(host));
    let connection_peer = connection_peer.to_canonical();
    if !is_trusted(&connection_peer) {
        return ClientAddress { peer: connection_peer, scheme: connection_scheme };
    }
    let mut peer = connection_peer;
    let mut proxies_between = 0;
    for (index, host) in header_entries(headers, "x-forwarded-for").into_iter().rev().map(parse_host).enumerate() {
        // An invalid entry: the proxy that forwarded it is the last known host.
        let Some(host) = host else { break };
        (peer, proxies_between) = (host, index);
        if !is_trusted(&host) {
            break;
        }
    }
    let protocols = header_entries(headers, "x-forwarded-proto");
    // A proxy appends to the header or replaces it; the client's protocol is at the same position from the right as its
    // address.
    let protocol = protocols.iter().rev().nth(proxies_between).or(protocols.first());
    let scheme = match protocol {
        Some(protocol) if protocol.eq_ignore_ascii_case("https") => Scheme::ProxyHttps,
        Some(protocol) if protocol.eq_ignore_ascii_case("http") => Scheme::Http,
        _ => connection_scheme,
    };
    ClientAddress { peer, scheme }
}

/// Returns the entries of a list that may be spread over several headers.
fn header_entries<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // A header that is not text is an invalid entry.
    let lists = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or_default());
    lists.flat_map(|list| list.split(',')).map(str::trim).collect()
}

/// Parses an address as proxies write it, with an optional port.
fn parse_host(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.split_once(']').map(|(host, _)| host);
    let with_port = || text.rsplit_once(':').map(|(host, _)| host).filter(|host| !host.contains(':'));
    let ip = text.parse().ok().or_else(|| bracketed().or_else(with_port)?.parse().ok());
    ip.map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// Headers by their first letter: `f`or and `p`roto.
    type ForwardedHeaders<'t> = &'t [(char, &'t str)];

    fn client(connection_peer: &str, tls: bool, forwarded: ForwardedHeaders, trusted: &str) -> (String, Scheme) {
        let mut headers = HeaderMap::new();
        for (kind, text) in forwarded {
            let name = if *kind == 'f' { "x-forwarded-for" } else { "x-forwarded-proto" };
            headers.append(name, HeaderValue::from_bytes(text.as_bytes()).expect("a header"));
        }
        let trusted: Vec<IpNet> = trusted.split_whitespace().map(|net| net.parse().expect("a net")).collect();
        let client_address = resolve_client(connection_peer.parse().expect("an address"), tls, &headers, &trusted);
        (client_address.peer.to_string(), client_address.scheme)
    }

    #[test]
    fn only_trusted_proxies_set_the_client_address() {
        use Scheme::{DirectHttps, Http, ProxyHttps};
        const NETS: &str = "10.0.0.0/8 fd00::/8 2001:db8::1/128";
        let cases: &[(&str, bool, ForwardedHeaders, &str, Scheme)] = &[
            // No trusted proxies, or not this one.
            ("10.0.0.1", false, &[], "10.0.0.1", Http),
            ("192.0.2.1", false, &[('f', "203.0.113.9"), ('p', "https")], "192.0.2.1", Http),
            ("192.0.2.1", true, &[('f', "10.0.0.1"), ('p', "http")], "192.0.2.1", DirectHttps),
            ("2001:db8::2", false, &[('f', "203.0.113.9"), ('p', "https")], "2001:db8::2", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https")], "203.0.113.9", ProxyHttps),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "HTTP")], "203.0.113.9", Http),
            ("10.0.0.1", true, &[('f', "203.0.113.9"), ('p', "http")], "203.0.113.9", Http),
            ("10.0.0.1", true, &[('f', "203.0.113.9")], "203.0.113.9", DirectHttps),
            ("10.0.0.1", false, &[('p', "https")], "10.0.0.1", ProxyHttps),
            ("::ffff:10.0.0.1", false, &[('f', "203.0.113.9")], "203.0.113.9", Http),
            ("2001:db8::1", false, &[('f', "2001:db8::77")], "2001:db8::77", Http),
            // Several proxies, in one header or many.
            ("10.0.0.1", false, &[('f', "203.0.113.9, 10.0.0.2"), ('p', "https")], "203.0.113.9", ProxyHttps),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('f', "fd00::2,10.0.0.3")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9, 10.0.0.2"), ('p', "https, http")], "203.0.113.9", ProxyHttps),
            ("10.0.0.1", false, &[('f', "10.0.0.9, 10.0.0.2"), ('p', "https")], "10.0.0.9", ProxyHttps),
            // Entries that the client has written itself.
            ("10.0.0.1", false, &[('f', "127.0.0.1, 203.0.113.9")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "127.0.0.1"), ('f', "203.0.113.9, 10.0.0.2")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https, http")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https"), ('p', "http")], "203.0.113.9", Http),
            // Ports, brackets and invalid entries.
            ("10.0.0.1", false, &[('f', "203.0.113.9:4711")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "[2001:db8::77]:4711")], "2001:db8::77", Http),
            ("10.0.0.1", false, &[('f', "[2001:db8::77]")], "2001:db8::77", Http),
            ("10.0.0.1", false, &[('f', "::ffff:203.0.113.9")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "unknown"), ('p', "gopher")], "10.0.0.1", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9, unknown, 10.0.0.2")], "10.0.0.2", Http),
            ("10.0.0.1", false, &[('f', ""), ('p', "")], "10.0.0.1", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9, ö")], "10.0.0.1", Http),
            ("10.0.0.1", false, &[('f', "1.2.3.4.5:1:2]["), ('f', ",,,")], "10.0.0.1", Http),
        ];
        for (connection_peer, tls, headers, peer, scheme) in cases {
            let expected = ((*peer).to_owned(), *scheme);
            assert_eq!(client(connection_peer, *tls, headers, NETS), expected, "{connection_peer} {tls} {headers:?}");
        }
        let untrusted = client("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https")], "");
        assert_eq!(untrusted, ("10.0.0.1".to_owned(), Http));
    }
}
