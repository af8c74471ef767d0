//! Recognizes host names of this machine.

/// Returns whether a host, with or without a port, is this machine.
pub fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names() {
        for yes in
            ["localhost", "localhost:8001", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8001", "[::1]:8001", "[::1]", "::1"]
        {
            assert!(is_loopback_host(yes), "{yes}");
        }
        for no in [
            "",
            "evil.example",
            "evil.example:8001",
            "localhost.evil.example",
            "10.0.0.1:8001",
            "[fe80::1]:1",
            "127.0.0.1.evil",
        ] {
            assert!(!is_loopback_host(no), "{no}");
        }
    }
}
