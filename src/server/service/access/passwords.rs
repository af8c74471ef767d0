//! Passwords: Argon2id with the parameters that OWASP names first for servers (19 MiB, two passes, one lane).

use std::sync::Arc;

use app::domain::password::{Weakness, check_length};
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use zxcvbn::{Score, zxcvbn};

use super::blocklist::BREACHED;
use crate::service::Core;
use crate::service::refusal::{Invalid, Refusal};

/// Words that a guesser tries first on this server.
const OBVIOUS: [&str; 4] = ["simpletuner", "orchestrator", "training", "dashboard"];

/// Of nobody's password.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Whether fewer than 10^8 guesses find it: a common password, a pattern of keys, a date, or the person's own name. The
/// estimate looks at the first 100 characters.
fn is_guessable(name: &str, password: &str) -> bool {
    let obvious: Vec<&str> = OBVIOUS.into_iter().chain([name]).collect();
    zxcvbn(password, &obvious).score() < Score::Three
}

impl Core {
    /// Refuses a password of this person's that is too short, or that somebody would guess.
    pub(super) async fn check_password(&self, name: &str, password: &str) -> Result<(), Refusal> {
        check_length(password).map_err(Invalid::Password)?;
        if self.doors.blocklist.has(password) {
            return Err(Invalid::Password(Weakness::Listed).into());
        }
        let (name, text) = (name.to_owned(), password.to_owned());
        let guessable = self.hashing(move || Ok(is_guessable(&name, &text))).await?;
        match (guessable, BREACHED.has(password)) {
            (true, _) => Err(Invalid::Password(Weakness::Guessable).into()),
            (_, true) => Err(Invalid::Password(Weakness::Breached).into()),
            _ => Ok(()),
        }
    }

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

    #[test]
    fn common_passwords_patterns_and_ones_own_name_are_guessable() {
        let guessed = [
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
        for password in guessed {
            assert!(is_guessable("ada.lovelace", password), "{password}");
        }
        for password in
            ["correct-horse-battery", "purple otter sings at dawn", "zK4#qv9Lw2!x", "übermäßig langes Gleis"]
        {
            assert!(!is_guessable("ada.lovelace", password), "{password}");
        }
    }

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
