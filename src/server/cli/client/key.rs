//! As whom a server is asked.

use std::path::PathBuf;

use reqwest::Url;

use super::way::parse;
use crate::cli::Secret;
use crate::files::operator::{self, Note};

/// What opens the door.
#[derive(Debug, Clone)]
pub enum Key {
    /// Nothing: for a server without accounts.
    None,
    /// An API token.
    Token(Secret),
    /// The token of the server's own host.
    Operator {
        /// As it was when it was read.
        token: Secret,
        /// Where a newer one is, if there is one: the data directory, and this host's name. Each start makes another.
        note: Option<(PathBuf, String)>,
    },
}

impl Key {
    /// Whether it is that of the server's own host.
    pub fn is_operators(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }

    /// The token to send to this server now.
    pub fn token(&self, url: &Url) -> Option<Secret> {
        let newer = |(data, host): &(PathBuf, String)| note_of(operator::find(data, host).ok()??, url);
        match self {
            Self::None => None,
            Self::Token(token) => Some(token.clone()),
            Self::Operator { token, note } => {
                let newer = note.as_ref().and_then(newer).map(|note| Secret(note.token));
                Some(newer.unwrap_or_else(|| token.clone()))
            }
        }
    }
}

/// The note, if it is that server's: it is for no other.
pub fn note_of(note: Note, url: &Url) -> Option<Note> {
    parse(&note.url).is_ok_and(|own| own.origin() == url.origin()).then_some(note)
}
