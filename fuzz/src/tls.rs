//! Modules of the server from `src/server/tls`.

#[path = "../../src/server/tls/certificate.rs"]
pub mod certificate;
#[path = "../../src/server/tls/validity.rs"]
mod validity;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
