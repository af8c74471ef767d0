//! The credential that a command sends to a server.

use std::path::PathBuf;

use reqwest::Url;

use super::connection::parse_url;
use crate::args::SecretString;
use crate::files::operator_file::{self, OperatorEndpoint};

/// A credential of a client.
#[derive(Debug, Clone)]
pub enum ApiCredential {
    /// None: for a server without accounts.
    None,
    /// An API token.
    Token(SecretString),
    /// The token of the server's own host.
    Operator {
        /// The token when it was read.
        token: SecretString,
        /// Where to find a newer token, if known: the data directory and this host's name. Each start of the server
        /// creates another one.
        note: Option<(PathBuf, String)>,
    },
}

impl ApiCredential {
    /// Returns whether it is the token of the server's own host.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }

    /// Returns the current token for this server.
    pub fn token(&self, url: &Url) -> Option<SecretString> {
        let newer = |(data, host): &(PathBuf, String)| {
            endpoint_for_server(operator_file::find_endpoint(data, host).ok()??, url)
        };
        match self {
            Self::None => None,
            Self::Token(token) => Some(token.clone()),
            Self::Operator { token, note } => {
                let newer = note.as_ref().and_then(newer).map(|endpoint| SecretString(endpoint.token));
                Some(newer.unwrap_or_else(|| token.clone()))
            }
        }
    }
}

/// Returns the endpoint file's content if it belongs to that server.
pub fn endpoint_for_server(endpoint: OperatorEndpoint, url: &Url) -> Option<OperatorEndpoint> {
    parse_url(&endpoint.url).is_ok_and(|endpoint_url| endpoint_url.origin() == url.origin()).then_some(endpoint)
}
