//! Masks the agent's own secrets in its log and output.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use super::Secret;
use super::mask::Mask;

/// The token, the session, and earlier sessions: a response may arrive late.
const MAX_SECRETS: usize = 8;

static AGENT_SECRETS: RwLock<Option<AgentSecrets>> = RwLock::new(None);

#[derive(Debug, Default)]
struct AgentSecrets {
    secrets: VecDeque<Secret>,
    mask: Mask,
}

impl AgentSecrets {
    fn add(&mut self, secret: &Secret) {
        if self.secrets.contains(secret) {
            return;
        }
        if self.secrets.len() == MAX_SECRETS {
            // The first is the token.
            self.secrets.remove(1);
        }
        self.secrets.push_back(secret.clone());
        self.mask = Mask::from_values(self.secrets.iter().map(Secret::reveal));
    }
}

/// Masks this secret from now on.
pub fn add(secret: &Secret) {
    AGENT_SECRETS.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().add(secret);
}

/// Replaces the secrets by stars.
pub fn mask_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(agent_secrets) = AGENT_SECRETS.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        agent_secrets.mask.mask_bytes(&mut bytes);
    }
    bytes
}

pub fn mask_text(text: &str) -> String {
    String::from_utf8_lossy(&mask_bytes(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_stays_masked_and_old_sessions_are_dropped() {
        let mut agent_secrets = AgentSecrets::default();
        agent_secrets.add(&Secret::new("wt_0123456789"));
        for number in 0..20 {
            agent_secrets.add(&Secret::new(&format!("ws_012345678{number:02}")));
        }
        assert_eq!(agent_secrets.secrets.len(), MAX_SECRETS);
        assert_eq!(agent_secrets.mask.mask_text("wt_0123456789 ws_01234567819 x"), "************* ************** x");
        assert_eq!(agent_secrets.mask.mask_text("ws_01234567800"), "ws_01234567800");
    }
}
