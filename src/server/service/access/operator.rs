//! Whoever is on the server's host: with a token of this life of the server, which only the server's own user and root
//! can read. It is in memory as its digest, and nowhere else but in that file.

use app::domain::access::{Permissions, is_name};
use subtle::ConstantTimeEq;

use super::{Person, Via};
use crate::service::Core;
use crate::tokens;

/// How the token begins.
const PREFIX: &str = "ot_";

impl Core {
    /// At start: a token for the host. One that was given out before opens nothing any more.
    pub fn operator_token(&self) -> String {
        let token = tokens::mint(PREFIX, &*self.random);
        *self.doors.operator.lock().expect("no panic while it is held") = Some(tokens::digest(&token));
        token
    }

    /// Whoever has it, with the name by which they say the host knows them.
    pub fn operator(&self, token: &str, said: Option<&str>) -> Option<Person> {
        if !token.starts_with(PREFIX) {
            return None;
        }
        let expected = self.doors.operator.lock().expect("no panic while it is held").clone()?;
        let fits: bool = expected.as_bytes().ct_eq(tokens::digest(token).as_bytes()).into();
        fits.then(|| Person {
            // No account can be called so.
            name: format!("host:{}", said.filter(|name| is_name(name)).unwrap_or("somebody")),
            user: None,
            via: Via::Host,
            permissions: Permissions::all(),
            proved_at: None,
            unread_notices: 0,
            ticket: None,
        })
    }
}
