//! Passwords: Argon2id with the parameters that OWASP names first for servers (19 MiB, two passes, one lane).

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};

use crate::service::Core;
use crate::service::refusal::{Invalid, Refusal};

/// The shortest, in characters.
pub const SHORTEST: usize = 10;
/// The longest, in bytes.
pub const LONGEST: usize = 1_024;

/// Of nobody's password.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Refuses what is too easy to guess, or too long to be one.
pub fn check(password: &str) -> Result<(), Refusal> {
    let good = password.chars().count() >= SHORTEST && password.len() <= LONGEST;
    if good { Ok(()) } else { Err(Invalid::Range { field: "password", allowed: "10 to 1024 characters long" }.into()) }
}

impl Core {
    /// What is kept of a password.
    pub(super) async fn hashed(&self, password: &str) -> Result<String, Refusal> {
        let (password, salt) = (password.to_owned(), self.random.bytes::<16>());
        self.hashing(move || {
            let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
            hash.map(|hash| hash.to_string()).map_err(|error| Refusal::Files(error.to_string()))
        })
        .await
    }

    /// Whether it is the password that this is kept of. Without one it takes as long, and is not.
    pub(super) async fn is_password(&self, hash: Option<String>, password: &str) -> Result<bool, Refusal> {
        let password = password.to_owned();
        self.hashing(move || {
            let kept = hash.as_deref().unwrap_or(NOBODYS);
            let parsed = PasswordHash::new(kept).map_err(|error| Refusal::Files(error.to_string()))?;
            Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && hash.is_some())
        })
        .await
    }

    async fn hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = Arc::clone(&self.doors.hashing).acquire_owned().await;
        let turn = turn.map_err(|error| Refusal::Files(error.to_string()))?;
        // It goes on when whoever asked hangs up, and so does its turn.
        let work = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Refusal::Files(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to the salt: what a hash costs.
    fn cost(hash: &str) -> Vec<&str> {
        hash.split('$').take(4).collect()
    }

    #[test]
    fn a_name_that_is_not_there_costs_what_a_wrong_password_does() {
        let real = Argon2::default().hash_password_with_salt(b"a password", &[7; 16]).expect("a hash").to_string();
        assert_eq!(cost(NOBODYS), cost(&real));
        // One that does not parse would be refused without any work.
        let parsed = PasswordHash::new(NOBODYS).expect("a hash");
        let verdict = Argon2::default().verify_password(b"a password", &parsed);
        assert_eq!(verdict, Err(argon2::password_hash::Error::PasswordInvalid));
    }
}
