//! The address of this server, as the caller of a request reaches it.

use app::domain::passkey::{PasskeyOrigin, PasskeyOriginError};
use app::protocol::system::fingerprint::Fingerprint;
use axum::http::{HeaderMap, header};

use super::client_addr::Scheme;
use crate::http::state::AppState;
use crate::tls::Tls;

/// The address of this server, for commands to copy.
pub struct ServerAddress {
    /// The URL that the caller used.
    pub base_url: String,
    /// The fingerprint that agents verify, where the certificate alone does not suffice.
    pub fingerprint: Option<Fingerprint>,
}

/// Returns the address that the caller used.
pub fn server_address(app: &AppState, scheme: Scheme, headers: &HeaderMap) -> ServerAddress {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // A name that could break a command is not repeated.
    let is_plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    let base_url = format!("{}://{}", scheme.as_str(), host.filter(is_plain).unwrap_or(&app.address));
    // A proxy has its own certificate.
    let fingerprint = app.tls.as_ref().filter(|_| scheme == Scheme::DirectHttps).and_then(Tls::pin);
    ServerAddress { base_url, fingerprint }
}

/// Returns the origin that the caller's browser shows, if passkeys work there.
pub fn passkey_origin(scheme: Scheme, headers: &HeaderMap) -> Result<PasskeyOrigin, PasskeyOriginError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    PasskeyOrigin::new(scheme.is_secure(), host)
}
