//! Passkeys of users, and their challenges.

use app::domain::ids::{PasskeyId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPasskey {
    /// The id in the API.
    pub id: PasskeyId,
    pub user: UserId,
    /// The name that the owner has given it.
    pub name: String,
    /// The origin where it was created; it works only there.
    pub origin: String,
    /// The credential id, in base64url.
    pub credential_id: String,
    /// Public key, counter and attributes, as JSON.
    pub credential: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used.
    pub used_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengePurpose {
    Registration,
    Login,
    /// To confirm the identity of a signed-in user.
    Reauthentication,
}

impl ChallengePurpose {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registration => "set_up",
            Self::Login => "login",
            Self::Reauthentication => "proof",
        }
    }
}

/// A challenge for a passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyChallenge {
    /// The owner of the passkey.
    pub user: UserId,
    /// The origin of the page.
    pub origin: String,
    /// The options for the browser, as JSON.
    pub options: String,
    /// The state for checking the response, as JSON.
    pub state: String,
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Passkeys, and challenges by purpose and holder: a session, or a pending sign-in.
#[async_trait]
pub trait PasskeyQueries {
    /// The passkeys of a user, oldest first.
    async fn passkeys(&mut self, user: &UserId) -> Result<Vec<StoredPasskey>>;
    /// Returns whether this credential id is registered.
    async fn has_credential(&mut self, credential_id: &str) -> Result<bool>;
    /// Inserts a passkey. [`crate::store::StoreError::Conflict`] if it is registered.
    async fn insert_passkey(&mut self, passkey: &StoredPasskey) -> Result<()>;
    /// Records a use with the new state of the credential. [`crate::store::StoreError::Conflict`] if the passkey was
    /// deleted.
    async fn record_passkey_use(&mut self, id: &PasskeyId, credential: &str, at: Timestamp) -> Result<()>;
    /// Deletes a passkey. [`crate::store::StoreError::Conflict`] if it does not exist.
    async fn delete_passkey(&mut self, id: &PasskeyId) -> Result<()>;
    /// Stores a challenge, replaces the previous one, and deletes expired ones.
    async fn put_challenge(
        &mut self,
        purpose: ChallengePurpose,
        holder: &str,
        challenge: &PasskeyChallenge,
    ) -> Result<()>;
    /// Returns a challenge, also an expired one.
    async fn challenge(&mut self, purpose: ChallengePurpose, holder: &str) -> Result<Option<PasskeyChallenge>>;
    /// Returns and deletes a challenge: each is answered once.
    async fn take_challenge(&mut self, purpose: ChallengePurpose, holder: &str) -> Result<Option<PasskeyChallenge>>;
}
