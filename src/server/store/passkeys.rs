//! Passkeys of people, and what passkeys are asked to sign.

use app::domain::ids::{PasskeyId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPasskey {
    /// The id, by which it is removed.
    pub id: PasskeyId,
    /// Whose.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// The address where it was made and where alone it works.
    pub origin: String,
    /// What browsers call it, in base64url.
    pub credential_id: String,
    /// Its public key, its counter and what it said of itself, as JSON.
    pub credential: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used.
    pub used_at: Option<Timestamp>,
}

/// What a passkey is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be added to an account.
    SetUp,
    /// To log in, after the password.
    Login,
    /// To prove once more who is logged in.
    Proof,
}

impl Purpose {
    /// Its name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SetUp => "set_up",
            Self::Login => "login",
            Self::Proof => "proof",
        }
    }
}

/// What a passkey is to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Whose passkey.
    pub user: UserId,
    /// The address of the page that asks.
    pub origin: String,
    /// What the browser is given, as JSON.
    pub options: String,
    /// What the answer is checked against, as JSON.
    pub state: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it may be answered.
    pub ends_at: Timestamp,
}

/// Passkeys, and challenges by what they are for and who holds them: a session, or a login that waits.
#[async_trait]
pub trait Passkeys {
    /// Somebody's passkeys, oldest first.
    async fn passkeys(&mut self, user: &UserId) -> Result<Vec<StoredPasskey>>;
    /// Whether anybody has the passkey that browsers call so.
    async fn has_credential(&mut self, credential_id: &str) -> Result<bool>;
    /// Adds one. [`super::StoreError::Conflict`] if somebody has it.
    async fn insert_passkey(&mut self, passkey: &StoredPasskey) -> Result<()>;
    /// Writes down what it said of itself when it was used. [`super::StoreError::Conflict`] if it is gone.
    async fn note_passkey(&mut self, id: &PasskeyId, credential: &str, at: Timestamp) -> Result<()>;
    /// Removes one. [`super::StoreError::Conflict`] if it is gone.
    async fn delete_passkey(&mut self, id: &PasskeyId) -> Result<()>;
    /// Keeps a challenge, in place of the one before, and forgets those that have ended.
    async fn put_challenge(&mut self, purpose: Purpose, holder: &str, challenge: &Challenge) -> Result<()>;
    /// A challenge, also one that has ended.
    async fn challenge(&mut self, purpose: Purpose, holder: &str) -> Result<Option<Challenge>>;
    /// The same, which is gone then: each is answered once.
    async fn take_challenge(&mut self, purpose: Purpose, holder: &str) -> Result<Option<Challenge>>;
}
