//! Startup messages: listen address, fingerprint, and the URL for the first admin.

use std::net::SocketAddr;

use crate::http::state::AppState;
use crate::http::system::PLAIN_HTTP_WARNING;
use crate::tls::Tls;

/// Logs the listen address and the fingerprint for agents.
pub fn log_address(app: &AppState, tls: Option<&Tls>, address: SocketAddr) {
    if let Some(tls) = tls {
        tracing::info!("listening on https://{address}");
        tracing::info!("fingerprint for agents: --orchestrator-fingerprint {}", tls.fingerprint());
        return;
    }
    tracing::info!("listening on http://{address}");
    if app.is_plain_http_exposed() {
        tracing::warn!("{PLAIN_HTTP_WARNING}");
    }
}

/// Returns the URL of the sign-in page with the setup code. If the server listens on all networks, the host is one that
/// works on this machine.
pub fn setup_url(encrypted: bool, listening: SocketAddr, code: &str) -> String {
    let scheme = if encrypted { "https" } else { "http" };
    let host =
        if listening.ip().is_unspecified() { format!("localhost:{}", listening.port()) } else { listening.to_string() };
    format!("{scheme}://{host}/login?setup={code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_url_is_reachable() {
        let url =
            |encrypted, listening: &str| setup_url(encrypted, listening.parse().expect("an address"), "AAAA-BBBB");
        assert_eq!(url(false, "127.0.0.1:8001"), "http://127.0.0.1:8001/login?setup=AAAA-BBBB");
        assert_eq!(url(true, "[2001:db8::1]:443"), "https://[2001:db8::1]:443/login?setup=AAAA-BBBB");
        assert_eq!(url(false, "0.0.0.0:8001"), "http://localhost:8001/login?setup=AAAA-BBBB");
        assert_eq!(url(false, "[::]:8001"), "http://localhost:8001/login?setup=AAAA-BBBB");
    }
}
