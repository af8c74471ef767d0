//! Shared by the programs that connect to an orchestrator over the network: the agent and the command line.

mod describe_tls_error;
mod server_trust;

use std::error::Error;

pub use describe_tls_error::untrusted_certificate_text;
pub use server_trust::{ServerTrust, ServerTrustError};

/// Returns the text of the innermost cause of an error, which is the most specific.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
