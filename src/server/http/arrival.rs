//! How a request came: from which host, and whether over HTTPS. What proxies say is believed of those that are listed
//! (`--trusted-proxies`), and of nobody else: the headers are as easily written by anyone.

use std::net::IpAddr;

use axum::http::{Extensions, HeaderMap};
use ipnet::IpNet;

/// What the caller speaks. The variants say who has the certificate that it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// Plain HTTP.
    #[default]
    Http,
    /// HTTPS, which a trusted proxy ends.
    ProxysHttps,
    /// HTTPS with this very server.
    OwnHttps,
}

impl Scheme {
    /// Of a connection to this server without anybody in between.
    pub fn direct(tls: bool) -> Self {
        if tls { Self::OwnHttps } else { Self::Http }
    }

    /// Of the request with these extensions.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// Whether nobody in between can read what is said.
    pub fn is_secure(self) -> bool {
        self != Self::Http
    }

    /// As it stands in addresses.
    pub fn as_str(self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }
}

/// Where a request came from, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The client's host: the connection's other end, or whom trusted proxies name.
    pub peer: IpAddr,
    /// What the client speaks.
    pub scheme: Scheme,
}

/// What is believed of a request on a connection from `connected`, over TLS or not.
///
/// Proxies add themselves on the right, so the list is read from there, and the first host that is no trusted proxy is
/// the client: all that stands further left was written by it.
pub fn arrival(connected: IpAddr, tls: bool, headers: &HeaderMap, trusted: &[IpNet]) -> Arrival {
    let own = Scheme::direct(tls);
    let is_trusted = |host: &IpAddr| trusted.iter().any(|net| net.contains(host));
    let connected = connected.to_canonical();
    if !is_trusted(&connected) {
        return Arrival { peer: connected, scheme: own };
    }
    let mut peer = connected;
    let mut proxies_between = 0;
    for (place, host) in entries(headers, "x-forwarded-for").into_iter().rev().map(host).enumerate() {
        // Junk is nobody's address: the proxy that passed it on is the last that is known.
        let Some(host) = host else { break };
        (peer, proxies_between) = (host, place);
        if !is_trusted(&host) {
            break;
        }
    }
    let protocols = entries(headers, "x-forwarded-proto");
    // A proxy adds its word or replaces all; the word about the client stands as far to the right as its address.
    let word = protocols.iter().rev().nth(proxies_between).or(protocols.first());
    let scheme = match word {
        Some(word) if word.eq_ignore_ascii_case("https") => Scheme::ProxysHttps,
        Some(word) if word.eq_ignore_ascii_case("http") => Scheme::Http,
        _ => own,
    };
    Arrival { peer, scheme }
}

/// The entries of a list that may be spread over several headers.
fn entries<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // What is no text is an entry all the same: junk.
    let lists = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or_default());
    lists.flat_map(|list| list.split(',')).map(str::trim).collect()
}

/// An address as proxies write it, perhaps with a port.
fn host(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.split_once(']').map(|(host, _)| host);
    let with_port = || text.rsplit_once(':').map(|(host, _)| host).filter(|host| !host.contains(':'));
    let ip = text.parse().ok().or_else(|| bracketed().or_else(with_port)?.parse().ok());
    ip.map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// Headers by first letter of what they say: `f`or and `p`roto.
    type Said<'t> = &'t [(char, &'t str)];

    fn came(connected: &str, tls: bool, said: Said, trusted: &str) -> (String, Scheme) {
        let mut headers = HeaderMap::new();
        for (what, text) in said {
            let name = if *what == 'f' { "x-forwarded-for" } else { "x-forwarded-proto" };
            headers.append(name, HeaderValue::from_bytes(text.as_bytes()).expect("a header"));
        }
        let trusted: Vec<IpNet> = trusted.split_whitespace().map(|net| net.parse().expect("a net")).collect();
        let arrival = arrival(connected.parse().expect("an address"), tls, &headers, &trusted);
        (arrival.peer.to_string(), arrival.scheme)
    }

    #[test]
    fn only_listed_proxies_are_believed() {
        use Scheme::{Http, OwnHttps, ProxysHttps};
        const NETS: &str = "10.0.0.0/8 fd00::/8 2001:db8::1/128";
        let cases: &[(&str, bool, Said, &str, Scheme)] = &[
            // Nobody is listed there, or not this one.
            ("10.0.0.1", false, &[], "10.0.0.1", Http),
            ("192.0.2.1", false, &[('f', "203.0.113.9"), ('p', "https")], "192.0.2.1", Http),
            ("192.0.2.1", true, &[('f', "10.0.0.1"), ('p', "http")], "192.0.2.1", OwnHttps),
            ("2001:db8::2", false, &[('f', "203.0.113.9"), ('p', "https")], "2001:db8::2", Http),
            // One proxy.
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https")], "203.0.113.9", ProxysHttps),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "HTTP")], "203.0.113.9", Http),
            ("10.0.0.1", true, &[('f', "203.0.113.9"), ('p', "http")], "203.0.113.9", Http),
            ("10.0.0.1", true, &[('f', "203.0.113.9")], "203.0.113.9", OwnHttps),
            ("10.0.0.1", false, &[('p', "https")], "10.0.0.1", ProxysHttps),
            ("::ffff:10.0.0.1", false, &[('f', "203.0.113.9")], "203.0.113.9", Http),
            ("2001:db8::1", false, &[('f', "2001:db8::77")], "2001:db8::77", Http),
            // Several, in one header or many.
            ("10.0.0.1", false, &[('f', "203.0.113.9, 10.0.0.2"), ('p', "https")], "203.0.113.9", ProxysHttps),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('f', "fd00::2,10.0.0.3")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9, 10.0.0.2"), ('p', "https, http")], "203.0.113.9", ProxysHttps),
            ("10.0.0.1", false, &[('f', "10.0.0.9, 10.0.0.2"), ('p', "https")], "10.0.0.9", ProxysHttps),
            // Whatever the client wrote itself stands further left.
            ("10.0.0.1", false, &[('f', "127.0.0.1, 203.0.113.9")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "127.0.0.1"), ('f', "203.0.113.9, 10.0.0.2")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https, http")], "203.0.113.9", Http),
            ("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https"), ('p', "http")], "203.0.113.9", Http),
            // Ports, brackets and junk.
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
        for (connected, tls, said, peer, scheme) in cases {
            let expected = ((*peer).to_owned(), *scheme);
            assert_eq!(came(connected, *tls, said, NETS), expected, "{connected} {tls} {said:?}");
        }
        let nobody = came("10.0.0.1", false, &[('f', "203.0.113.9"), ('p', "https")], "");
        assert_eq!(nobody, ("10.0.0.1".to_owned(), Http));
    }
}
