//! The operator on the server's host. Each start of the server creates a token that only the server's user and root can
//! read. Memory holds only its digest; the token itself is in that file only.

use app::domain::access::{Permissions, is_valid_name};
use subtle::ConstantTimeEq;

use super::{AuthMethod, Principal};
use crate::service::access::AccessService;
use crate::tokens;

/// The prefix of operator tokens.
const TOKEN_PREFIX: &str = "ot_";

impl AccessService {
    /// Creates the operator token at start; earlier ones are no longer valid.
    pub fn issue_operator_token(&self) -> String {
        let token = tokens::generate(TOKEN_PREFIX, &*self.context.random);
        *self.authenticator.operator.lock().expect("no panic while it is held") = Some(tokens::digest(&token));
        token
    }

    /// Authenticates an operator token; `user_name` is the name of the operating system user.
    pub fn authenticate_operator(&self, token: &str, user_name: Option<&str>) -> Option<Principal> {
        if !token.starts_with(TOKEN_PREFIX) {
            return None;
        }
        let expected = self.authenticator.operator.lock().expect("no panic while it is held").clone()?;
        let is_valid: bool = expected.as_bytes().ct_eq(tokens::digest(token).as_bytes()).into();
        is_valid.then(|| Principal {
            // No account can have this name.
            name: format!("host:{}", user_name.filter(|name| is_valid_name(name)).unwrap_or("unknown")),
            user: None,
            via: AuthMethod::Host,
            permissions: Permissions::all(),
            reauthenticated_at: None,
            unread_notices: 0,
            credential: None,
        })
    }
}
