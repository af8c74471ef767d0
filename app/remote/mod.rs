//! What every program needs that talks to an orchestrator over the network: the agent and the command line.

mod distrust;
mod trust;

use std::error::Error;

pub use distrust::sentence as distrust;
pub use trust::{Trust, TrustError};

/// The last cause of an error, which says most.
pub fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
