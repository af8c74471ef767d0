//! The agent's own secrets in what it says of itself: others read its log.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use super::Secret;
use super::mask::Mask;

/// The token, the session, and sessions before: an answer may come late.
const REMEMBERED: usize = 8;

static OWN: RwLock<Option<Own>> = RwLock::new(None);

#[derive(Debug, Default)]
struct Own {
    secrets: VecDeque<Secret>,
    mask: Mask,
}

impl Own {
    fn add(&mut self, secret: &Secret) {
        if self.secrets.contains(secret) {
            return;
        }
        if self.secrets.len() == REMEMBERED {
            // The first is the token.
            self.secrets.remove(1);
        }
        self.secrets.push_back(secret.clone());
        self.mask = Mask::of(self.secrets.iter().map(Secret::reveal));
    }
}

/// From now on it is said nowhere.
pub fn hide(secret: &Secret) {
    OWN.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().add(secret);
}

/// What is to be said, with stars where one of them is.
pub fn without(said: &[u8]) -> Vec<u8> {
    let mut said = said.to_vec();
    if let Some(own) = OWN.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        own.mask.hide(&mut said);
    }
    said
}

/// The same of a text.
pub fn text_without(said: &str) -> String {
    String::from_utf8_lossy(&without(said.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_never_forgotten_and_old_sessions_are() {
        let mut own = Own::default();
        own.add(&Secret::new("wt_0123456789"));
        for number in 0..20 {
            own.add(&Secret::new(&format!("ws_012345678{number:02}")));
        }
        assert_eq!(own.secrets.len(), REMEMBERED);
        assert_eq!(own.mask.text("wt_0123456789 ws_01234567819 x"), "************* ************** x");
        assert_eq!(own.mask.text("ws_01234567800"), "ws_01234567800");
    }
}
