//! Sources of a new password. It is never read from the command line, where others can see it.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::output::Output;
use crate::exit::ExitError;
use crate::random::{OsRandom, Random};

/// Without a flag, the command asks for the password.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct PasswordArgs {
    /// Read the password from this file; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Generate a password and print it (shown once).
    #[arg(long)]
    generate_password: bool,
}

/// A password, and whether it must be printed.
pub struct ChosenPassword {
    pub text: String,
    /// Whether it was generated here.
    pub is_generated: bool,
}

impl PasswordArgs {
    /// Returns the password; `None` without a flag and a terminal.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or the repeated input differs.
    pub fn resolve(&self, user: &str, output: &mut Output<'_>) -> Result<Option<ChosenPassword>, ExitError> {
        if self.generate_password {
            return Ok(Some(ChosenPassword { text: random_password(&OsRandom), is_generated: true }));
        }
        if let Some(file) = &self.password_file {
            return read_password_file(file).map(|text| Some(ChosenPassword { text, is_generated: false }));
        }
        let Some(password) = output.prompter.prompt(&format!("New password of {user}: "), false)? else {
            return Ok(None);
        };
        let repeated = output.prompter.prompt("Repeat the password: ", false)?;
        if repeated.as_ref() != Some(&password) {
            return Err(ExitError::failed("the passwords differ; nothing was changed".to_owned()));
        }
        Ok(Some(ChosenPassword { text: password, is_generated: false }))
    }
}

fn read_password_file(file: &Path) -> Result<String, ExitError> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| ExitError::config(format!("cannot read {}: {error}", file.display())))?;
    // The line break is not part of the password; spaces may be.
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Returns a random password (119 bits) that can be read aloud.
fn random_password(random: &dyn Random) -> String {
    const READABLE_LETTERS: &[u8; 31] = b"abcdefghijkmnpqrstuvwxyz23456789".first_chunk().expect("long enough");
    let digits = random.bytes::<96>().into_iter().filter(|byte| *byte < 248).take(24);
    let letters: Vec<char> = digits.map(|byte| char::from(READABLE_LETTERS[usize::from(byte % 31)])).collect();
    letters.chunks(6).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::CountingRandom;

    #[test]
    fn generated_passwords_are_long_and_unique() {
        let random = CountingRandom::default();
        let passwords: BTreeSet<String> = (0..100).map(|_| random_password(&random)).collect();
        assert_eq!(passwords.len(), 100);
        assert!(passwords.iter().all(|text| text.len() == 27 && text.split('-').count() == 4), "{passwords:?}");
    }

    #[test]
    fn line_break_of_the_file_is_not_part_of_the_password() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("password");
        std::fs::write(&file, " with spaces \r\n").expect("written");
        assert_eq!(read_password_file(&file).expect("readable"), " with spaces ");
        assert_eq!(read_password_file(&directory.path().join("none")).expect_err("no such file").code(), 78);
    }
}
