//! Passwords: Argon2id with OWASP's first recommendation for servers (19 MiB, two passes, one lane).

use std::sync::Arc;

use app::domain::password::{PasswordWeakness, check_length};
use app::threads;
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use zxcvbn::{Score, zxcvbn};

use super::blocklist::BREACHED_PASSWORDS;
use super::users::invalid_name_field;
use crate::service::access::AccessService;
use crate::service::error::{InvalidField, InvalidInput, ServiceError, require_valid};

/// Words that an attacker tries first on this server.
const OBVIOUS_WORDS: [&str; 4] = ["simpletuner", "orchestrator", "training", "dashboard"];

/// A hash for users that do not exist, so that the check takes as long.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Returns whether fewer than 10^8 guesses find the password: a common one, a keyboard pattern, a date, or the user's
/// name. The estimate uses the first 100 characters.
fn is_guessable(name: &str, password: &str) -> bool {
    let obvious: Vec<&str> = OBVIOUS_WORDS.into_iter().chain([name]).collect();
    zxcvbn(password, &obvious).score() < Score::Three
}

impl AccessService {
    /// Rejects a password that is too short or guessable.
    pub(super) async fn check_password(&self, name: &str, password: &str) -> Result<(), ServiceError> {
        check_length(password).map_err(InvalidInput::Password)?;
        if self.authenticator.blocklist.contains(password) {
            return Err(InvalidInput::Password(PasswordWeakness::Listed).into());
        }
        let (name, text) = (name.to_owned(), password.to_owned());
        let guessable = self.run_hashing(move || Ok(is_guessable(&name, &text))).await?;
        match (guessable, BREACHED_PASSWORDS.contains(password)) {
            (true, _) => Err(InvalidInput::Password(PasswordWeakness::Guessable).into()),
            (_, true) => Err(InvalidInput::Password(PasswordWeakness::Breached).into()),
            _ => Ok(()),
        }
    }

    /// Rejects an invalid name or password of a new user.
    pub(super) async fn check_new_user(&self, name: &str, password: Option<&str>) -> Result<(), ServiceError> {
        let mut invalid_fields: Vec<InvalidField> = invalid_name_field(name).into_iter().collect();
        if let Some(password) = password {
            match self.check_password(name, password).await {
                Ok(()) => {}
                Err(ServiceError::Invalid(invalid)) => invalid_fields.push(InvalidField::new("password", invalid)),
                Err(other) => return Err(other),
            }
        }
        require_valid(invalid_fields)
    }

    /// Hashes a password for storage.
    pub(super) async fn hash_password(&self, password: &str) -> Result<String, ServiceError> {
        let (password, salt) = (password.to_owned(), self.context.random.bytes::<16>());
        self.run_hashing(move || {
            let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
            hash.map(|hash| hash.to_string()).map_err(|error| ServiceError::FilesUnavailable(error.to_string()))
        })
        .await
    }

    /// Verifies a password. Without a hash it takes as long, and returns `false`.
    pub(super) async fn verify_password(&self, hash: Option<String>, password: &str) -> Result<bool, ServiceError> {
        let password = password.to_owned();
        self.run_hashing(move || {
            let stored_hash = hash.as_deref().unwrap_or(DUMMY_HASH);
            let parsed =
                PasswordHash::new(stored_hash).map_err(|error| ServiceError::FilesUnavailable(error.to_string()))?;
            Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && hash.is_some())
        })
        .await
    }

    async fn run_hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let permit = Arc::clone(&self.authenticator.hashing).acquire_owned().await;
        let permit = permit.map_err(|error| ServiceError::FilesUnavailable(error.to_string()))?;
        // The work continues if the client disconnects, and holds its permit until its end.
        let work = move || {
            let _permit = permit;
            work()
        };
        threads::run_blocking(work).await.unwrap_or_else(|error| Err(ServiceError::FilesUnavailable(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_passwords_patterns_and_own_name_are_guessable() {
        let guessable = [
            "password1234",
            "Password1234!",
            "123456789012",
            "qwertyuiop12",
            "aaaaaaaaaaaaaaaa",
            "iloveyou1234",
            "simpletuner1",
            "SimpleTuner2024",
            "ada.lovelace",
            "ada.lovelace1",
            "letmeinletmein",
            "1q2w3e4r5t6y",
            "administrator",
            "unbelievable",
            "changemechangeme",
        ];
        for password in guessable {
            assert!(is_guessable("ada.lovelace", password), "{password}");
        }
        for password in
            ["correct-horse-battery", "purple otter sings at dawn", "zK4#qv9Lw2!x", "übermäßig langes Gleis"]
        {
            assert!(!is_guessable("ada.lovelace", password), "{password}");
        }
    }

    /// The part of a hash up to the salt: algorithm and cost.
    fn cost(hash: &str) -> Vec<&str> {
        hash.split('$').take(4).collect()
    }

    #[test]
    fn unknown_user_costs_as_much_as_a_wrong_password() {
        let real = Argon2::default().hash_password_with_salt(b"a password", &[7; 16]).expect("a hash").to_string();
        assert_eq!(cost(DUMMY_HASH), cost(&real));
        // A hash that does not parse would be rejected without any work.
        let parsed = PasswordHash::new(DUMMY_HASH).expect("a hash");
        let result = Argon2::default().verify_password(b"a password", &parsed);
        assert_eq!(result, Err(argon2::password_hash::Error::PasswordInvalid));
    }
}
