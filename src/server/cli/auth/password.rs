//! Where a new password comes from: never from the command line, which others can read.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::boot::exit::Exit;
use crate::cli::screen::Screen;
use crate::random::{OsRandom, Random};

/// See the module. Without a flag it is asked for.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct PasswordArgs {
    /// Read the password from this file; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Make one up and print it, this once.
    #[arg(long)]
    generate_password: bool,
}

/// A password, and whether somebody has to be told it.
pub struct Password {
    /// It.
    pub text: String,
    /// Whether it was made up here.
    pub is_news: bool,
}

impl PasswordArgs {
    /// The password that is meant; none if nobody can be asked.
    ///
    /// # Errors
    /// If a file cannot be read, or what was typed twice is not the same.
    pub fn choose(&self, who: &str, screen: &mut Screen<'_>) -> Result<Option<Password>, Exit> {
        if self.generate_password {
            return Ok(Some(Password { text: made_up(&OsRandom), is_news: true }));
        }
        if let Some(file) = &self.password_file {
            return read(file).map(|text| Some(Password { text, is_news: false }));
        }
        let Some(first) = screen.person.ask(&format!("New password of {who}: "), false)? else { return Ok(None) };
        let again = screen.person.ask("The same again: ", false)?;
        if again.as_ref() != Some(&first) {
            return Err(Exit::failed("these were two different passwords; nothing was changed".to_owned()));
        }
        Ok(Some(Password { text: first, is_news: false }))
    }
}

fn read(file: &Path) -> Result<String, Exit> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| Exit::config(format!("{} cannot be read: {error}", file.display())))?;
    // The end of the line is not the password's; spaces may be.
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// One that nobody guesses (119 bits) and that can be read out.
fn made_up(random: &dyn Random) -> String {
    const EASY: &[u8; 31] = b"abcdefghijkmnpqrstuvwxyz23456789".first_chunk().expect("long enough");
    let digits = random.bytes::<96>().into_iter().filter(|byte| *byte < 248).take(24);
    let letters: Vec<char> = digits.map(|byte| char::from(EASY[usize::from(byte % 31)])).collect();
    letters.chunks(6).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::CountedRandom;

    #[test]
    fn what_is_made_up_is_long_and_never_twice_the_same() {
        let random = CountedRandom::default();
        let made: BTreeSet<String> = (0..100).map(|_| made_up(&random)).collect();
        assert_eq!(made.len(), 100);
        assert!(made.iter().all(|text| text.len() == 27 && text.split('-').count() == 4), "{made:?}");
    }

    #[test]
    fn a_file_ends_with_a_line_and_a_password_does_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("password");
        std::fs::write(&file, " with spaces \r\n").expect("written");
        assert_eq!(read(&file).expect("readable"), " with spaces ");
        assert_eq!(read(&directory.path().join("none")).expect_err("not there").code(), 78);
    }
}
