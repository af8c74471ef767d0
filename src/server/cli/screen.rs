//! Where a command's words go: data to stdout, talk to stderr, questions to whoever sits there.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use app::domain::time::Timestamp;
use clap::Args;
use console::Term;
use serde_json::Value;

use super::table::{Cell, Table, facts};
use crate::boot::exit::Exit;
use crate::clock::{Clock, SystemClock};

/// Flags of every command that shows something.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows it as it is")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct OutputArgs {
    /// Print the API's own JSON: one document, lists complete.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print ids only, and no talk.
    #[arg(long, short, global = true, conflicts_with = "json")]
    pub quiet: bool,
    /// No colours (also: NO_COLOR; CLICOLOR_FORCE=1 has them everywhere).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Do not ask before something is deleted or replaced.
    #[arg(long, short, global = true)]
    pub yes: bool,
}

/// What is printed of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Words,
    /// The API's own document.
    Json,
    /// Ids, one to a line.
    Ids,
}

/// Whoever sits at the terminal.
pub trait Person {
    /// Shows a question and reads a line, with an echo or without; none if nobody sits there.
    fn ask(&mut self, question: &str, echo: bool) -> io::Result<Option<String>>;
}

/// See the module.
pub struct Screen<'w> {
    /// What is asked for.
    pub out: &'w mut dyn Write,
    /// All else.
    pub err: &'w mut dyn Write,
    /// Who can be asked.
    pub person: &'w mut dyn Person,
    /// What is printed.
    pub form: Form,
    /// Whether in colour.
    pub colour: bool,
    /// How many columns there are, if it is a terminal.
    pub width: Option<usize>,
    /// Whether progress may be drawn on stderr.
    pub draws: bool,
    /// Whether every question is answered with yes.
    pub yes: bool,
    /// Tells how long ago things were.
    pub clock: Arc<dyn Clock>,
}

impl Screen<'_> {
    /// Something for people that nobody asked for.
    pub fn say(&mut self, sentence: impl AsRef<str>) -> Result<(), Exit> {
        if self.form == Form::Ids {
            return Ok(());
        }
        self.warn(sentence)
    }

    /// The same, however quiet it is to be.
    pub fn warn(&mut self, sentence: impl AsRef<str>) -> Result<(), Exit> {
        Ok(writeln!(self.err, "{}", sentence.as_ref())?)
    }

    /// A line of what was asked for.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), Exit> {
        writeln!(self.out, "{}", line.as_ref())?;
        Ok(self.out.flush()?)
    }

    /// What was asked for, as it is.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Exit> {
        self.out.write_all(bytes)?;
        Ok(self.out.flush()?)
    }

    /// An answer in the form that is wanted.
    pub fn answer(
        &mut self,
        document: &Value,
        ids: impl IntoIterator<Item = String>,
        words: impl FnOnce(&Self) -> String,
    ) -> Result<(), Exit> {
        let text = match self.form {
            Form::Json => format!("{document:#}\n"),
            Form::Ids => ids.into_iter().map(|id| id + "\n").collect(),
            Form::Words => words(self),
        };
        self.bytes(text.as_bytes())
    }

    /// A table as this screen shows it.
    pub fn table(&self, table: &Table) -> String {
        table.render(self.width, self.colour)
    }

    /// Facts as this screen shows them.
    pub fn facts(&self, pairs: &[(&str, Cell)]) -> String {
        facts(pairs, self.colour)
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    /// If the answer is no, or nobody can be asked.
    pub fn confirm(&mut self, question: &str) -> Result<(), Exit> {
        if self.yes {
            return Ok(());
        }
        match self.person.ask(&format!("{question} [y/N] "), true)? {
            None => Err(Exit::usage(format!("{question} Nobody can be asked here: add --yes if that is meant"))),
            Some(answer) if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") => Ok(()),
            Some(_) => Err(Exit::failed("nothing was changed".to_owned())),
        }
    }
}

/// Whoever sits at this process's terminal.
pub struct AtTerminal;

impl Person for AtTerminal {
    fn ask(&mut self, question: &str, echo: bool) -> io::Result<Option<String>> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(None);
        }
        let term = Term::stderr();
        term.write_str(question)?;
        if echo { term.read_line() } else { term.read_secure_line() }.map(Some)
    }
}

/// Does something with this process's own screen.
pub fn with_own<T>(output: &OutputArgs, work: impl FnOnce(&mut Screen<'_>) -> T) -> T {
    let terminal = io::stdout().is_terminal();
    let variable = |name: &str| std::env::var(name).ok();
    // Locked, a line is written at once: whoever follows a log through a pipe waits for it.
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    work(&mut Screen {
        out: &mut out,
        err: &mut err,
        person: &mut AtTerminal,
        form: form(output),
        colour: coloured(output.no_color, terminal, variable),
        width: terminal.then(|| usize::from(Term::stdout().size().1)),
        draws: io::stderr().is_terminal() && !output.quiet,
        yes: output.yes,
        clock: Arc::new(SystemClock),
    })
}

/// What the flags ask for.
pub fn form(output: &OutputArgs) -> Form {
    match (output.json, output.quiet) {
        (true, _) => Form::Json,
        (false, true) => Form::Ids,
        (false, false) => Form::Words,
    }
}

/// Whether there is colour: by the flag, by what the environment says, by where it goes.
fn coloured(no_color: bool, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let forced = variable("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let dumb = variable("TERM").is_some_and(|value| value == "dumb");
    !no_color && !set("NO_COLOR") && (forced || (terminal && !dumb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_unless_somebody_says_otherwise() {
        for (flag, terminal, variables, expected) in [
            (false, true, &[][..], true),
            (false, false, &[], false),
            (true, true, &[], false),
            (false, true, &[("NO_COLOR", "1")], false),
            (false, true, &[("NO_COLOR", "")], true),
            (false, false, &[("CLICOLOR_FORCE", "1")], true),
            (false, false, &[("CLICOLOR_FORCE", "0")], false),
            (false, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (true, false, &[("CLICOLOR_FORCE", "1")], false),
            (false, true, &[("TERM", "dumb")], false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value): &(&str, &str)| (*value).to_owned())
            };
            assert_eq!(coloured(flag, terminal, variable), expected, "{flag} {terminal} {variables:?}");
        }
    }
}
